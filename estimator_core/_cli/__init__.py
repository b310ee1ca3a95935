"""The `estimator` command. `main.py` has the table of commands. Every other file is one command or a part of one."""
