"""The capture itself."""
