"""The search for the largest rate that meets an objective, per server."""
