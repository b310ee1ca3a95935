"""The commands of estimator-runs, one per file."""
