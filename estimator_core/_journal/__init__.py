"""The journal of a model_dir: an ordered history, written by one writer at a time."""
