"""Deliberately empty: given to gunicorn as its configuration, so that it does not look for another
one."""
