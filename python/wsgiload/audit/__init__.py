"""Finds what is wrong with the results of other load generators, from their files alone. Pure but
for ``read``, which reads the files."""
