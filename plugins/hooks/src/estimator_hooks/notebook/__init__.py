"""What a notebook shows: live progress with a loss curve, and tables in the place of addresses."""

from estimator_hooks.notebook.register import register, shell

__all__ = ["register", "shell"]
