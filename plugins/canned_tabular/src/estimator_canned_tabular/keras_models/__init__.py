"""Compiled Keras 3 models as estimators."""
