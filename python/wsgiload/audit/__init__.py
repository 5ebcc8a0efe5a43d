"""Detects problems in the results of other load generators, from their files alone. Pure, apart
from ``read``, which reads the files."""
