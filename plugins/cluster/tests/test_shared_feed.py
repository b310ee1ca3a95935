"""Tests of parts of an input that have ended where a run continues. A part does not restart while another has rows."""

import json
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from estimator_cluster import calls
from estimator_cluster.shared_feed import SharedFeed
from estimator_core.inputs import InputPosition, open_input


class Told:
    """A coordinator of two processes with fixed answers of the other one."""

    index, count = 0, 2

    def __init__(self, other: bool) -> None:
        self.other, self.topics = other, list[str]()

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        self.topics.append(topic)
        return [value, json.dumps(self.other)]


def first_drawn(examples: int | None, *, other_ended: bool) -> tuple[Any, Any, list[str]]:
    """Returns the first batch of three, the source, and the agreed value."""
    batches = [({"x": np.full((2, 1), number)}, np.zeros(2)) for number in range(3)]
    position = None
    if examples is not None:
        *_, last = open_input(lambda: batches, mode="train")
        position = InputPosition(last.position.fingerprint, examples, examples // 2)
    source = open_input(lambda: batches, mode="train", position=position)
    processes: Any = Told(other_ended)
    placement: Any = SimpleNamespace(mesh=jax.make_mesh((1,), ("data",)))
    feed = SharedFeed(source, placement, processes, "feed", source)
    feed._draw()
    return feed._ahead[0][0], source, processes.topics


def test_a_part_that_has_ended_stays_ended_while_another_one_has_rows() -> None:
    batch, source, topics = first_drawn(6, other_ended=False)
    assert batch is None
    assert topics == ["feed-ended"]
    assert not source.ended  # the input has not ended
    assert source.restored == (
        "Input continues after 6 examples: the part of this process has ended, but that of another process has not."
    )


@pytest.mark.parametrize(
    ("examples", "other_ended", "value"),
    [(6, True, 0), (4, False, 2), (4, True, 2)],
    ids=["all ended", "none ended", "the other one ended"],
)
def test_any_other_part_is_read(examples: int, other_ended: bool, value: int) -> None:
    batch, source, topics = first_drawn(examples, other_ended=other_ended)
    assert batch.features["x"][0, 0] == value
    assert topics == ["feed-ended"]
    assert source.ended == (examples == 6)


def test_an_input_without_a_position_needs_no_agreement() -> None:
    batch, _, topics = first_drawn(None, other_ended=False)
    assert batch.features["x"][0, 0] == 0
    assert topics == []


def test_a_batch_is_counted_before_the_devices_wait_for_other_processes() -> None:
    """A process that waited in its devices had counted too few batches, so nobody saw that another one had stopped."""
    batches = [({"x": np.zeros((2, 1))}, np.zeros(2))]
    source = open_input(lambda: batches, mode="train")
    placement: Any = SimpleNamespace(mesh=jax.make_mesh((1,), ("data",)))
    feed = SharedFeed(source, placement, Told(other=False), "feed", source)  # pyright: ignore[reportArgumentType]
    before, counted = calls._DRAWN[0], list[int]()

    def wait(told: Any) -> Any:
        counted.append(calls._DRAWN[0])

    feed._tell = wait
    feed._draw()
    assert counted == [before + 1]
