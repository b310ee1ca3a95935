"""The command of estimator-explain."""
