"""A run manifest (run.json), decoded part by part. Anybody may have written it: nothing in it is trusted."""
