"""The sub-commands that this package adds to `estimator`, one file each."""
