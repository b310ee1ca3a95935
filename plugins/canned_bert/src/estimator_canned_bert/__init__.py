"""BERT and ALBERT sentence classifier for estimator-core: library and command."""

__version__ = "0.1.0"
