"""The command `estimator`."""

from estimator_core._cli.main import main

__all__ = [
    "main",
]
