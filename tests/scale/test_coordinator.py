"""The contract of a Coordinator, kept by a process that is alone and by the link of several."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from estimator_core._cluster.link import Link
from estimator_core._cluster.together import chief_says, ending_together, gather
from estimator_core.coordinator import ALONE, Coordinator, Lost
from estimator_core.errors import PreemptedError, ProcessLostError


@pytest.fixture
def links() -> Iterator[list[Link]]:
    """Two ends of a link in one process."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    made: dict[int, Link] = {}

    def connect(index: int) -> None:
        made[index] = Link(address, 2, index, on_lost=lambda lost: None, timeout=30.0)

    other = threading.Thread(target=connect, args=(1,))
    other.start()
    connect(0)
    other.join()
    yield [made[0], made[1]]
    for link in (made[1], made[0]):
        link.leave()
    ends = [end for link in made.values() for end in link._peers.values()]
    for end in ends:
        with contextlib.suppress(OSError):  # the other end was faster
            end.shutdown(socket.SHUT_RDWR)
    for thread in threading.enumerate():
        if thread.name == "process-link":
            thread.join(10)
    for end in ends:
        end.close()


def test_alone_agrees_with_itself() -> None:
    alone: Coordinator = ALONE
    assert (alone.index, alone.count, alone.lost()) == (0, 1, None)
    assert gather(alone, "any", [1, None]) == [[1, None]]
    assert chief_says(alone, "any", {"a": 1}) == {"a": 1}
    alone.barrier("any", timeout=0.0)


def test_what_was_told_early_is_kept_in_order(links: list[Link]) -> None:
    first, second = (links[0].post("topic", number) for number in (1, 2))
    assert links[1].gather("topic", "a") == [1, "a"]
    assert links[1].gather("topic", "b") == [2, "b"]
    assert [first(), second()] == [[1, "a"], [2, "b"]]


@pytest.mark.parametrize(("index", "missing"), [(0, 1), (1, 0)])
def test_a_wait_ends_and_names_who_has_not_come(links: list[Link], index: int, missing: int) -> None:
    began = time.monotonic()
    with pytest.raises(ProcessLostError, match=rf"Processes \[{missing}\] of 2 have not come to 'topic#0'") as raised:
        links[index].gather("topic", 1, timeout=0.3)
    assert raised.value.index == missing
    assert 0.3 <= time.monotonic() - began < 5


class _Two:
    """The first of two processes; the other one answers by itself, or is lost."""

    index, count = 0, 2

    def __init__(self, gone: Lost | None = None) -> None:
        self._gone = gone
        self.failed: list[BaseException] = []

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        return [value, json.dumps("other")]

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        assert value is not None
        return value

    def barrier(self, topic: str, timeout: float) -> None:
        pass

    def fail(self, error: BaseException) -> None:
        self.failed.append(error)

    def lost(self) -> Lost | None:
        return self._gone

    def close(self) -> None:
        pass


def test_values_travel_as_json() -> None:
    two = _Two()
    assert gather(two, "any", {"rows": [1, 2]}) == [{"rows": [1, 2]}, "other"]
    assert chief_says(two, "any", None) is None


def test_an_error_is_told_to_the_others() -> None:
    two, error = _Two(), RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"), ending_together(two):
        raise error
    assert two.failed == [error]


@pytest.mark.parametrize("error", [PreemptedError("stopped", step=3), ProcessLostError("gone", 1)])
def test_what_all_know_is_told_to_nobody(error: Any) -> None:
    two = _Two()
    with pytest.raises(type(error)), ending_together(two):
        raise error
    assert two.failed == []


def test_an_error_behind_a_lost_process_names_it() -> None:
    two = _Two(Lost(1, "host, pid 7", "it was killed"))
    with (
        pytest.raises(ProcessLostError, match=r"Process 1 of 2 \(host, pid 7\) is lost: it was killed"),
        ending_together(two),
    ):
        raise RuntimeError("the network broke")
    assert two.failed == []
