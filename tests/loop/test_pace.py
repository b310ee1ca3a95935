"""How far the host runs ahead of the device, and who keeps dispatches short."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import estimator_core as ec
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
    log: list[str] = []

    def dispatched(state: int, *batch: Any) -> tuple[int, dict[str, Any]]:
        log.append(f"dispatch {state + 1}")
        return state + 1, {"loss": Pending(log, state + 1)}

    live: Any = LiveState(state=0, step=0)  # type: ignore[arg-type]
    train_loop(Run(5), Nobody(), Batches(), lambda count: dispatched, live, Nobody())  # type: ignore[arg-type]
    expected = ["dispatch 1", "dispatch 2"]
    for step in (3, 4, 5):
        expected += [f"dispatch {step}", f"wait {step - 2}"]
    assert log == expected


class Every(ec.Hook):
    def __init__(self, steps: int) -> None:
        self.steps = steps

    def next_step(self, step: int) -> int | None:
        return (step // self.steps + 1) * self.steps

    def after_step(self, run: Any, step: int, out: Any) -> None:
        pass


@pytest.mark.parametrize(("every", "named"), [(3, True), (12, False)])
def test_the_log_names_the_hook_that_keeps_dispatches_short(
    make_estimator: Any, train_input: Any, caplog: pytest.LogCaptureFixture, every: int, named: bool
) -> None:
    caplog.set_level(logging.INFO, "estimator_core")
    make_estimator(
        steps_per_dispatch=8, save_checkpoints_steps=48, log_step_count_steps=None, save_summary_steps=None
    ).train(train_input, hooks=[Every(every)], max_steps=48)
    lines = [record.getMessage() for record in caplog.records if "one at a time" in record.getMessage()]
    assert ["hook Every" in line for line in lines] == ([True] if named else [])
