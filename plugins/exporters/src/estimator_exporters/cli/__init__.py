"""The sub-commands this package adds to `estimator`; one file each."""
