"""Tests of the simulation itself: it is deterministic, applies its faults as described, and shrinks failures."""

import time
import uuid

import pytest

from estimator_core.storage import OutcomeUnknownError, Storage, StorageError
from estimator_core.testing import simulation
from estimator_testing.simulation import Fault, Scenario, simulate


def nothing(evidence):
    return ()


def notes(outcome):
    return [event.about for event in outcome.events if isinstance(event, simulation.Note) and event.what == "saw"]


def seen(kind, call, program, *, lives=1, **more):
    """Returns what a program records when a fault meets its call."""
    scenario = Scenario(programs={"one": program}, check=nothing, lives=lives, **more)
    outcome = simulate(scenario, [Fault(kind, "one", call)])
    assert outcome.violations == ()
    return outcome, notes(outcome)


def put_and_look(process):
    try:
        process.storage.put_new("a", b"1")
    except OutcomeUnknownError:
        process.note("saw", "unknown")
    except StorageError as error:
        process.note("saw", type(error).__name__)
    process.note("saw", [entry.key for entry in process.storage.list("")])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("answer_lost", ["unknown", ["a"]]),
        ("request_lost", ["unknown", []]),
        ("request_late", ["unknown", []]),
        ("request_last", ["unknown", []]),
        ("doubled", [["a"]]),
        ("io_error", ["StorageError", []]),
        ("full", ["StorageFullError", []]),
        ("throttled", [["a"]]),
        ("kill_before", []),
        ("kill_after", []),
        ("power_after", []),
        ("freeze", [["a"]]),
        ("replaced", [["a"]]),
    ],
)
def test_what_a_fault_does(kind, expected):
    assert seen(kind, 1, put_and_look)[1] == expected


def test_a_late_request_arrives_after_others():
    def program(process):
        put_and_look(process)
        for _ in range(6):
            process.storage.now()
        process.note("saw", process.storage.get("a"))

    assert seen("request_late", 1, program)[1] == ["unknown", [], b"1"]


def test_a_killed_process_is_started_again_with_nothing_in_memory():
    def program(process):
        process.note("saw", process.life)
        process.storage.put("a", b"")

    assert seen("kill_after", 1, program, lives=3)[1] == [0, 1]


def test_power_takes_what_is_not_durable_and_leaves_the_rest():
    def program(process):
        if process.life == 0:
            process.storage.put_new("kept", b"")
            for number in range(20):
                process.storage.put(f"cache/{number}", b"")
        process.note("saw", len(list(process.storage.list("cache"))) if process.life else None)
        process.note("saw", process.storage.get("kept") if process.life else None)

    _, saw = seen("power_before", 21, program, lives=2, durable=frozenset({"put_new"}))
    assert 0 < saw[0] < 19
    assert saw[1] == b""


def test_what_power_takes_does_not_depend_on_later_faults():
    def program(process):
        for entry in list(process.storage.list("cache")):  # as many calls as objects are left
            process.storage.get(entry.key)
        for number in range(20):
            process.storage.put(f"cache/{process.life}-{number}", b"")

    scenario = Scenario(programs={"one": program}, check=nothing, durable=frozenset())
    power = Fault("power_before", "one", 21)
    plain = simulate(scenario, [power])
    for later in range(22, len(plain.calls) + 1):
        assert simulate(scenario, [power, Fault("turn", "one", later)]).calls == plain.calls
    report = simulation.explore(scenario, faults=3, schedules=500, seed=1, kinds=("power_before", "kill_before"))
    assert (report.schedules, report.failure) == (500, None)


def test_time_and_names_are_virtual_and_replay():
    def program(process):
        process.note("saw", time.time())
        time.sleep(3600.0)
        process.note("saw", time.time())
        process.note("saw", uuid.uuid4().hex)

    begun = time.perf_counter()
    first = seen("turn", 1, program)[1]
    assert first == seen("turn", 1, program)[1]
    assert first[1] - first[0] == 3600.0
    assert time.perf_counter() - begun < 60.0


def test_a_frozen_process_goes_on_after_the_others():
    order = []

    def program(process):
        process.storage.now()
        order.append(process.name)

    scenario = Scenario(programs={"one": program, "two": program}, check=nothing)
    simulate(scenario, [Fault("freeze", "one", 1)])
    assert order == ["two", "one"]


def test_two_processes_that_wake_at_the_same_moment():
    def program(process):
        time.sleep(5.0)
        process.note("saw", process.name)

    outcome = simulate(Scenario(programs={"one": program, "two": program}, check=nothing))
    assert notes(outcome) == ["one", "two"]


def test_an_error_that_no_storage_raises_is_a_violation():
    def program(process):
        raise KeyError("x")

    (violation,) = simulate(Scenario(programs={"one": program}, check=nothing)).violations
    assert "one, life 0, ended with KeyError: 'x' (test_simulation.py:" in violation


def test_a_program_that_does_not_end_is_a_violation():
    def program(process):
        while True:
            process.storage.now()

    (violation,) = simulate(Scenario(programs={"one": program}, check=nothing)).violations
    assert "does not end" in violation


def add(process):
    """Increments a counter without a conditional write, so two concurrent calls lose one increment."""
    storage = process.storage
    count = int(storage.get("count")) if list(storage.list("")) else 0
    storage.put("count", str(count + 1).encode())


def two(evidence):
    if (count := int(evidence.storage.get("count"))) != 2:
        yield f"two processes have counted to {count}"


def test_a_failing_schedule_is_made_small_and_replays():
    scenario = Scenario(programs={"one": add, "two": add}, check=two)
    kinds = ("turn", "freeze", "throttled", "clock_back")
    report = simulation.explore(scenario, faults=3, schedules=1000, seed=3, kinds=kinds)
    assert report.failure is not None
    assert len(report.failure.faults) == 1
    assert simulate(scenario, report.failure.faults) == report.failure
    assert simulation.explore(scenario, faults=3, schedules=1000, seed=3, kinds=kinds).failure == report.failure
    assert "VIOLATION\nsimulate(scenario, [Fault(" in str(report)


def test_a_systematic_exploration_meets_every_fault_at_every_call():
    def program(process):
        process.storage.put("a", b"")
        process.storage.put("b", b"")

    scenario = Scenario(programs={"one": program}, check=nothing, lives=1)
    assert simulation.explore(scenario, faults=1, kinds=("throttled", "turn")).schedules == 4
    assert simulation.explore(scenario, faults=2, kinds=("throttled", "turn")).schedules == 4


def test_what_cannot_be_asked():
    scenario = Scenario(programs={"one": add}, check=nothing)
    with pytest.raises(ValueError, match="is of a process that is not among one"):
        simulate(scenario, [Fault("turn", "two", 1)])
    with pytest.raises(ValueError, match="give their number"):
        simulation.explore(scenario, seed=1)


def test_the_virtual_storage_keeps_the_contract():
    def program(process):
        storage = process.storage
        assert isinstance(storage, Storage)
        storage.put_stream("a/1", [b"01", b"23"], size=4)
        storage.put("a/10", b"")
        storage.put("b", b"")
        assert storage.get_ranges("a/1", [(1, 3), (4, 4)]) == [b"12", b""]
        assert [entry.key for entry in storage.list("a")] == ["a/1", "a/10"]
        assert list(storage.list("a/1")) == []
        storage.delete(["b", "b"])
        with pytest.raises(StorageError, match="should have 3 bytes, but 2"):
            storage.put_stream("c", [b"01"], size=3)

    assert simulate(Scenario(programs={"one": program}, check=nothing)).violations == ()
