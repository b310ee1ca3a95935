"""Runs a function just before the first batch is drawn."""

from __future__ import annotations

from collections.abc import Callable

from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Run


class IteratorInitializerHook(Hook):
    """Calls `iterator_initializer_func(run)` after devices are ready and input_fn was called, before a batch is drawn.

    The code that creates the input also creates the hook and sets the attribute. The data is loaded when the run
    begins, on the machine of the run.

    Attributes:
        iterator_initializer_func: the function. It must be set before the run begins.

    Raises:
        HookError: the attribute is not set; raised in the run.

    Example:
        >>> hook = IteratorInitializerHook()
        >>> hook.iterator_initializer_func = lambda run: print("loading for", run.mode)

    Source: the well-known MNIST tutorial of tf.estimator, whose hook acts in `after_create_session`.
    """

    def __init__(self) -> None:
        self.iterator_initializer_func: Callable[[Run], object] | None = None

    def begin(self, run: Run) -> None:
        """Calls the function."""
        if self.iterator_initializer_func is None:
            raise HookError(
                "IteratorInitializerHook: the attribute iterator_initializer_func is not set. Set it to a function of "
                "the run that loads the data, before train, evaluate or predict is called."
            )
        self.iterator_initializer_func(run)
