"""The interpreter of the app, and one locked environment per server."""
