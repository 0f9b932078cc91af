"""Differences between ranks."""
