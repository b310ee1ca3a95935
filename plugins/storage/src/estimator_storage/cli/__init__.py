"""The command `estimator storage`."""
