"""Sweeps: Optuna chooses values, estimators train, a directory keeps the results."""
