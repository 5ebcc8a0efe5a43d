"""Experiments as frozen data: cells, their order, and the expected duration."""
