"""Hooks that only observe are called some dispatches late, while the device is busy with the next ones.

A hook that reads a value waits for the device, and the device then waits for the hook. With a few dispatches between
the two, neither waits: worth several percent of steps of a tenth of a millisecond.
"""

from __future__ import annotations

from collections import deque

from estimator_core.loop.hook_runner import HookRunner
from estimator_core.loop.outputs import LazyOutputs
from estimator_core.loop.run import LoopRun
from estimator_core.loop.time_spent import HOOKS


class Backlog:
    """Outputs of dispatches whose hooks have not been called yet, oldest first.

    None is left out from the first one for which a hook was due: which step a hook wants next, it says only after it
    was called.

    Args:
        run: what the hooks see.
        runner: calls them.
    """

    def __init__(self, run: LoopRun, runner: HookRunner) -> None:
        self._run = run
        self._runner = runner
        self._waiting: deque[LazyOutputs] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, outputs: LazyOutputs) -> None:
        """Puts off the calls for one dispatch."""
        self._waiting.append(outputs)

    def serve(self) -> None:
        """Calls the hooks, step by step, as if nothing had been dispatched since."""
        now: int = self._run.step
        try:
            while self._waiting:
                outputs = self._waiting.popleft()
                self._run.step = outputs.steps[-1]
                if self._runner.wake <= self._run.step:
                    with self._run.time_spent.on(HOOKS):
                        self._runner.after(outputs)
        finally:
            self._run.step = now

    def give_up(self, error: BaseException) -> None:
        """What can still be said of the steps before one that failed is said; the failure is what is reported."""
        try:
            self.serve()
        except Exception as other:
            error.add_note(f"Hooks that were still to see the steps before it failed as well: {other!r}")

