"""Settings without a command-line option in hypercorn."""

h11_max_incomplete_size = 65_536
