"""Edits: what a change of the job does to the dependency graph. One module per kind of change."""
