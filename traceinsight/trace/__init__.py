"""``TraceSet``: what was recorded, as columns, and what follows from it across ranks."""
