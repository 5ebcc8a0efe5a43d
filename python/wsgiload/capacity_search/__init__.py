"""Searches for the highest rate at which each server meets an objective."""
