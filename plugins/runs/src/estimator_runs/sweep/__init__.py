"""Sweeps: Optuna chooses, estimators train, a directory keeps what is done."""
