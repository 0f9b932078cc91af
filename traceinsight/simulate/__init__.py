"""A discrete-event model of training steps that writes traces with known truth."""
