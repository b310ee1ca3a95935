"""The command `estimator run`: `run.py` is the command, the other files are parts of it."""
