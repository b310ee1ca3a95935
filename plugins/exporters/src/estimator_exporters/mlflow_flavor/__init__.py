"""Exports as models of MLflow (extra mlflow): logged, loaded and served by MLflow itself, as its flavour pyfunc."""
