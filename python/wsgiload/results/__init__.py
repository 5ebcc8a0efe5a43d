"""What was measured: the record of a cell, its summary, and the run directory."""
