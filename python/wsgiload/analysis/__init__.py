"""Conclusions from stored cells: aggregates, comparisons, alarms and recommendations. Pure
functions."""
