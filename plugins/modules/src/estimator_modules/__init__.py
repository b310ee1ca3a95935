"""Flax NNX, Flax Linen, Equinox and Keras modules inside the model_fn of estimator-core."""

__version__ = "0.1.0"
__all__: list[str] = []
