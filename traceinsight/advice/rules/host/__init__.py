"""The host side."""
