"""The command `estimator plan`."""
