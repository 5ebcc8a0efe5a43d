"""Resource counters of a server, read at fixed moments, and what they add up to."""
