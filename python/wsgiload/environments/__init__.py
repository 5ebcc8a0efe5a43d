"""The app's interpreter, and one locked environment per server."""
