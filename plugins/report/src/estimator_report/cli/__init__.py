"""The command `estimator report`."""
