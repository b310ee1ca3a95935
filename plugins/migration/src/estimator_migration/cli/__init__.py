"""The command `estimator migrate`."""
