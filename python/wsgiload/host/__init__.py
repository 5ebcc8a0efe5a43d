"""Facts about the machine: processors, topology, kernel."""
