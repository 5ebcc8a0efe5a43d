"""Runs one server from launch to removal, and checks that it serves correctly."""
