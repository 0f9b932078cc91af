"""Intervals, robust statistics, units, errors: what every floor above may use."""
