"""The output in notebooks: live progress with a loss curve, and tables instead of object addresses."""

from estimator_hooks.notebook.register import register, shell

__all__ = ["register", "shell"]
