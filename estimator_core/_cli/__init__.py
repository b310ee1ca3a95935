"""The `estimator` command: `main.py` has the table of commands, every other file is one command or a part of one."""
