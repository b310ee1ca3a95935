"""Commands of estimator-launchers."""
