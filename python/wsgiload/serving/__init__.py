"""One server from launch to removal, and the proof that it serves."""
