"""Measures, stores and looks up the noise floor of this machine."""
