"""Which trial comes next: pure generators, which measure nothing."""
