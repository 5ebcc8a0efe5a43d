"""Facts about the machine: its processors, their topology, its kernel."""
