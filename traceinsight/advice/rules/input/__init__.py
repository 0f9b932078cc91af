"""Data input."""
