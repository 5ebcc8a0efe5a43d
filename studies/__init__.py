"""Makes docs/studies.md and its charts from stored runs of ``wsgiload reproduce``."""
