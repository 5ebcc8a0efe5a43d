"""The results of an experiment: the record of a cell, its summary, and the run directory."""
