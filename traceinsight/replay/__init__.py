"""Replay: a dependency graph of the measured steps over all ranks, and what becomes of it when edited."""
