"""The statistics of comparisons: pure functions of numbers, with their sources."""
