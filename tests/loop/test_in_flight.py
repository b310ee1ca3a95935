"""Tests of how far the host runs ahead of the device (trap 27)."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from estimator_core._loop import dispatch
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._loop.train import train_loop


class Device:
    """A device with its own clock that finishes each dispatch `seconds` after the previous one."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.done = seconds, 0.0, 0
        self.dispatched = self.furthest = 0

    def dispatch(self, state: Any, *batch: Any) -> tuple[Any, dict[str, Any]]:
        self.dispatched += 1
        self.furthest = max(self.furthest, self.dispatched - self.done)
        return state, {"loss": Pending(self, self.dispatched)}

    def wait(self, number: int) -> None:
        self.now += self.seconds * (number - self.done)
        self.done = number


class Pending:
    """A loss that is not computed yet. Losses are finished in the order of their dispatches."""

    def __init__(self, device: Device, number: int) -> None:
        self._device, self._number = device, number

    def block_until_ready(self) -> None:
        self._device.wait(self._number)


class Run:
    """The parts of a run that the loop needs."""

    def __init__(self, last_step: int) -> None:
        self.step, self.last_step, self.stop_reason, self.time_spent = 0, last_step, None, TimeSpent()

    def advance(self, dispatch: Any) -> None:
        self.step += 1


class Batches:
    """Endless single batches."""

    def singles(self) -> Any:
        return itertools.repeat(SimpleNamespace(features=None, labels=None, weights=None, position=None, size=1))

    def draw(self, room: float) -> Dispatch:
        class Last:
            position, size = None, 1

        return Dispatch(None, None, None, 1, Last)


class Nobody:
    """A schedule without hooks, in which either all steps or none of them are calm."""

    def __init__(self, *, calm: bool) -> None:
        self._calm_until = float("inf") if calm else 0.0

    def unobserved_until(self) -> tuple[float, float]:
        return min(200, self._calm_until), float("inf")

    def look(self) -> None:
        """Does nothing, because no hook waits."""

    def room(self) -> float:
        return float("inf")

    def agree(self) -> None:
        """Does nothing, because there is nothing to agree on."""

    def before(self, dispatch: Any) -> None:
        """Does nothing, because no hook observes the step."""

    def after(self, dispatch: Any, values: Any) -> None:
        """Does nothing, because no hook observes the step."""

    def catch_up(self) -> None:
        """Does nothing, because no hook is late."""


@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize(("seconds", "most"), [(0.05, 3), (0.002, 9), (1e-7, 33)])
def test_the_host_is_ahead_by_two_dispatches_or_16_milliseconds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, most: int, calm: bool
) -> None:
    device = Device(seconds)
    monkeypatch.setattr(dispatch, "time", SimpleNamespace(perf_counter=lambda: device.now))
    live: Any = DeviceState(state=0, step=0)  # type: ignore[arg-type]
    collaborators: Any = Run(200), live, Batches(), {1: device.dispatch}, Nobody(calm=calm), dispatch.InFlightLimiter()
    train_loop(*collaborators, NOBODY_ASKS)
    assert device.dispatched == 200
    # the last dispatch and those before it
    assert device.furthest == most
