"""Judges the claims of published comparisons with stored runs of ``wsgiload reproduce``, and makes
docs/studies.md and its charts from them.

Documents come from the public API. The statistics, the choice of the runs that count and the names
of servers are those of wsgiload's own reports, whose functions are not public.
"""
