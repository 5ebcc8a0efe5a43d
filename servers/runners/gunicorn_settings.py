"""Deliberately empty: with this file as its configuration, gunicorn does not search for another."""
