"""Tests of calls that several processes make together: how all end when one fails."""

import json
import time
from typing import Any

import pytest

from estimator_cluster.calls import ending_together
from estimator_core.coordinator import Lost
from estimator_core.errors import PreemptedError, ProcessLostError
from estimator_core.storage import StorageGoneError


class _Two:
    """A coordinator of the first of two processes. The other one returns fixed answers or is lost."""

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


def test_an_error_is_told_to_the_others() -> None:
    two, error = _Two(), RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"), ending_together(two):
        raise error
    assert two.failed == [error]


def test_an_error_that_takes_no_notes_is_raised_as_it_is() -> None:
    class Sealed(Exception):
        def add_note(self, note: str, /) -> None:
            raise AttributeError("cannot assign to field '__notes__'")

    two, error = _Two(), Sealed("broken")
    with pytest.raises(Sealed, match="broken"), ending_together(two):
        raise error
    assert two.failed == [error]


@pytest.mark.parametrize("error", [PreemptedError("stopped", step=3), ProcessLostError("gone", 1)])
def test_what_all_know_is_told_to_nobody(error: Any) -> None:
    two = _Two()
    with pytest.raises(type(error)), ending_together(two):
        raise error
    assert two.failed == []


def test_a_model_dir_that_is_gone_is_said_by_each() -> None:
    two, error = _Two(Lost(1, "host, pid 7", "it failed")), StorageGoneError("run was removed")
    with pytest.raises(StorageGoneError, match="run was removed"), ending_together(two):
        raise error
    assert two.failed == [error]


def test_an_error_behind_a_lost_process_names_it() -> None:
    two = _Two(Lost(1, "host, pid 7", "it was killed"))
    with (
        pytest.raises(ProcessLostError, match=r"Process 1 of 2 \(host, pid 7\) is lost: it was killed"),
        ending_together(two),
    ):
        raise RuntimeError("the network broke")
    assert two.failed == []


def test_a_closed_connection_names_the_process_that_has_ended() -> None:
    class Ended(_Two):
        """The other process ended without an error, which is noticed when this one waits for it."""

        def barrier(self, topic: str, timeout: float) -> None:
            self._gone = Lost(1, "host, pid 7", f"it has ended, while others wait for it at {topic!r}")
            raise ProcessLostError(self._gone.describe(2), 1)

    error = RuntimeError("UNKNOWN: Gloo AllGather failed: [pair.cc:547] Connection closed by peer [127.0.0.1]:30894")
    with (
        pytest.raises(ProcessLostError, match=r"Process 1 of 2 \(host, pid 7\) is lost: it has ended") as caught,
        ending_together(Ended()),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_a_connection_that_broke_for_all_is_the_error_of_each() -> None:
    two, error = _Two(), RuntimeError("UNKNOWN: Gloo AllReduce failed: Connection reset by peer")
    with (
        pytest.raises(ProcessLostError, match=r"although all are alive: UNKNOWN: .*Connection reset") as caught,
        ending_together(two),
    ):
        raise error
    assert caught.value.__cause__ is error
    assert two.failed == [caught.value]


def test_a_process_that_computes_undisturbed_is_not_named_for_a_connection_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third process, which had no part in the broken connection, was named as lost after 30 seconds."""

    class Third(_Two):
        def barrier(self, topic: str, timeout: float) -> None:
            if timeout < 60.0:
                self._gone = Lost(1, "there", f"it has not arrived at {topic!r} within {timeout:g} s")
                raise ProcessLostError(self._gone.describe(2), 1)
            time.sleep(60.0)

    monkeypatch.setattr("estimator_cluster.calls._NEWS_SECS", 0.1)
    two, error = Third(), RuntimeError("UNKNOWN: Gloo AllReduce failed: Connection reset by peer")
    with pytest.raises(ProcessLostError, match="The connection of this process") as caught, ending_together(two):
        raise error
    assert caught.value.index == 0
    assert two.failed == [caught.value]


def test_a_connection_to_something_else_is_the_fault_of_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process, which computed undisturbed, was named as lost."""

    class Late(_Two):
        def barrier(self, topic: str, timeout: float) -> None:
            self._gone = Lost(1, "there", f"it has not arrived at {topic!r} within {timeout:g} s")
            raise ProcessLostError(self._gone.describe(2), 1)

    monkeypatch.setattr("estimator_cluster.calls._NEWS_SECS", 0.0)
    two, error = Late(), RuntimeError("UNAVAILABLE: gs://bucket/rows: Connection reset by peer")
    with pytest.raises(RuntimeError, match="gs://bucket/rows"), ending_together(two):
        raise error
    assert two.failed == [error]


def test_an_error_that_an_inner_call_has_told_is_not_that_of_who_ends_because_of_it() -> None:
    class Gone(_Two):
        """The other process ends as soon as it learns of the error."""

        def lost(self) -> Lost | None:
            return Lost(1, "there", "it left") if self.failed else None

    def evaluation(two: Gone) -> None:
        with ending_together(two):
            raise RuntimeError("the evaluation broke")

    two = Gone()
    with pytest.raises(RuntimeError, match="the evaluation broke"), ending_together(two):
        evaluation(two)
    assert two.failed
