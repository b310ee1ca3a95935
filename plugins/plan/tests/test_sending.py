"""Tests of the advice for devices that send more than the variables explain."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimator_plan.collectives import Collective
from estimator_plan.communication_advice import advice_to_send_less, sent_by_fsdp

VARIABLES = {"a": np.zeros((1024, 256), np.float32), "b": np.zeros(1024, np.float16)}


def step(devices: int) -> Any:
    mesh = SimpleNamespace(size=devices)
    return SimpleNamespace(placement=SimpleNamespace(mesh=mesh), state=SimpleNamespace(variables=VARIABLES))


def sending(size: int) -> list[Collective]:
    given: dict[str, Any] = {"group_size": 8, "axes": ("data",), "crosses_groups": False, "count": 1}
    return [Collective(kind="all-gather", payload_bytes=size, sent_bytes=size, **given)]


def test_fsdp_sends_each_variable_twice_and_its_gradient():
    assert sent_by_fsdp(step(8), 8) == 3 * (1024 * 256 * 4 + 1024 * 2) * 7 // 8


@pytest.mark.parametrize(("times", "said"), [(1.0, False), (1.4, False), (1.6, True), (4.0, True)])
def test_a_step_that_sends_much_more_is_told_so_with_both_figures(times, said):
    expected = sent_by_fsdp(step(8), 8)
    lines = advice_to_send_less(sending(int(times * expected)), step(8))
    assert bool(lines) is said
    assert all(f"{times * expected / 2**20:.1f} MiB" in line and "--search" in line for line in lines)


def test_one_device_and_a_step_that_was_not_compiled_have_no_advice():
    assert advice_to_send_less(sending(10**12), step(1)) == ()
    assert advice_to_send_less(None, step(8)) == ()
