"""Some of the processors of this machine."""
