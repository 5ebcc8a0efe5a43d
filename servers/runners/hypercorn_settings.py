"""Settings of hypercorn for which it has no option."""

h11_max_incomplete_size = 65_536
