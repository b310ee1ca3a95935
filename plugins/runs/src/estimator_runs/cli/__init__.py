"""The commands of estimator-runs: one file a command."""
