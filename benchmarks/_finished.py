"""A hook that waits for the device at the end of a call, because a round ends when its last step was computed."""

from __future__ import annotations

import jax

import estimator_core as ec


class Finished(ec.Hook):
    """Never has control during the call, so that it does not slow down any step."""

    def __init__(self) -> None:
        self._run: ec.Run | None = None

    def begin(self, run: ec.Run) -> None:
        self._run = run

    def next_step(self, step: int) -> None:
        return None

    def end(self, run: ec.Run) -> None:
        self.wait()

    def wait(self) -> None:
        """Waits for every step dispatched so far."""
        assert self._run is not None, "the hook belongs to a call that has begun"
        jax.block_until_ready(self._run.state)
