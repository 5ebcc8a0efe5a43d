"""What on this machine would spoil a measurement, and the wait until the host is quiet."""
