"""Samples a server's resource counters at fixed intervals and aggregates them."""
