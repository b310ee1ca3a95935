"""What is needed to run a run again: its record, and the command that proves it."""
