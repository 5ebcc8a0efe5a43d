"""Detects conditions of this machine that distort measurements, and waits until the host is
quiet."""
