"""Charts: pure functions from a result and a palette to a figure; None when there is nothing to draw."""
