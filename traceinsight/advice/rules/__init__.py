"""One module per rule, named after the problem it detects, grouped by area."""
