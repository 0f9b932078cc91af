"""Rules: from measurements to findings, and what could not be judged. One file per rule."""
