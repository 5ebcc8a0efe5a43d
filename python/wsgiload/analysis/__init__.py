"""What stored cells say together: aggregates, comparisons, alarms and recommendations. Pure
functions."""
