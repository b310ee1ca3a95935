"""A hook that ends training when the loss hardly changes."""

from __future__ import annotations

from typing import Any

import estimator_core as ec


class StopWhenSettled(ec.Hook):
    """Stops when `|loss - previous| / (1 + |previous|)` falls below a tolerance.

    Args:
        tolerance: the relative change from one step to the next below which training stops.

    Example:
        >>> hook = StopWhenSettled(1e-3)

    Source: `_LossRelativeChangeHook` of tf.estimator's KMeans.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._previous: float | None = None

    def begin(self, run: Any) -> None:
        """Requests the loss of every step."""
        run.fetch("loss")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        """Compares the losses of two consecutive steps."""
        loss = float(out["loss"])
        previous, self._previous = self._previous, loss
        if previous is not None and abs(loss - previous) / (1.0 + abs(previous)) < self._tolerance:
            run.request_stop(f"the loss changed by less than {self._tolerance} of its value")

    def state(self) -> Any:
        """Returns the last loss, for a run that is resumed."""
        return {"previous": self._previous}

    def restore(self, state: Any) -> None:
        """Continues from a saved state."""
        self._previous = state["previous"]
