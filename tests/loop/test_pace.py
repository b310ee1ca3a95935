"""How far the host runs ahead of the device."""

from __future__ import annotations

from typing import Any

from estimator_core.loop.dispatch import Dispatch
from estimator_core.loop.live import LiveState
from estimator_core.loop.time_spent import TimeSpent
from estimator_core.loop.train import train_loop


class Pending:
    """A loss that is not computed yet."""

    def __init__(self, log: list[str], step: int) -> None:
        self.log, self.step = log, step

    def block_until_ready(self) -> None:
        self.log.append(f"wait {self.step}")


class Run:
    """What the loop needs of a run."""

    def __init__(self, last_step: int) -> None:
        self.step, self.last_step, self.stop_reason = 0, last_step, None
        self.batch_size, self.time_spent = 0, TimeSpent()


class Batches:
    """Endless single batches."""

    k = 1

    def draw(self, room: float) -> Dispatch:
        class Last:
            position, size = None, 1

        return Dispatch(None, None, None, 1, Last)


class Nobody:
    """No hook."""

    watches_clock = listens = requested = False
    wake = float("inf")


def test_at_most_two_dispatches_are_in_flight() -> None:
    """Trap 27."""
    log: list[str] = []

    def dispatched(state: int, *batch: Any) -> tuple[int, dict[str, Any]]:
        log.append(f"dispatch {state + 1}")
        return state + 1, {"loss": Pending(log, state + 1)}

    live: Any = LiveState(state=0, step=0)  # type: ignore[arg-type]
    train_loop(Run(5), Nobody(), Batches(), lambda count: dispatched, live, Nobody())  # type: ignore[arg-type]
    assert [line for line in log if "dispatch" in line] == [f"dispatch {step}" for step in range(1, 6)]
    flying = [
        sum("dispatch" in line for line in log[:at]) - sum("wait" in line for line in log[:at])
        for at, line in enumerate(log)
        if "dispatch" in line
    ]
    # as each is handed over: those handed over before it that nobody has waited for
    assert max(flying) <= 2
