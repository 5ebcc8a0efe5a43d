"""All cells of an experiment, each stored before the next begins."""
