"""The mathematics of comparisons. Pure functions of numbers, each with its source."""
