"""The step as a whole."""
