"""The command `estimator inputs`."""
