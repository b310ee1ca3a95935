"""Exports as MLflow models (extra mlflow). MLflow logs, loads and serves them with its flavor pyfunc."""
