"""Runs all cells of an experiment and stores each before the next begins."""
