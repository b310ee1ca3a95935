"""Tests that nothing is exported while a slice is too bad."""

import logging
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_slices import SliceGate, SliceRow


class Writes:
    """An exporter that exports each time, at once or in the background, or never."""

    name = "writes"

    def __init__(self, how="at once"):
        self.how, self.paths, self.waiting = how, [], None

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        if self.how == "never":
            return None
        self.paths.append(checkpoint_path)
        if self.how == "at once":
            return checkpoint_path
        self.waiting = checkpoint_path
        return None

    def wait(self):
        done, self.waiting = self.waiting, None
        return done


def result(metric="accuracy", **slices):
    """Returns the results of an evaluation. Each slice has 100 examples, but a slice named `few` has 3."""
    rows = [
        ({}, 1000, sum(slices.values()) / len(slices)),
        *(({"key": k}, 3 if k == "few" else 100, v) for k, v in slices.items()),
    ]
    return {
        "global_step": 7,
        "slices": [
            SliceRow(slice=one, examples=n, metrics={metric: value}, intervals={}).to_json() for one, n, value in rows
        ],
    }


def run(gate, tmp_path, checkpoint, **slices):
    return gate.export(None, str(tmp_path / "export"), checkpoint, result(**slices), False)


def test_a_slice_that_falls_holds_the_export_up(tmp_path, caplog):
    gate = SliceGate(Writes(), metric="accuracy", largest_fall=0.05)
    assert run(gate, tmp_path, "1", a=0.9, b=0.7) == "1"
    with caplog.at_level(logging.WARNING, "estimator_slices"):
        assert run(gate, tmp_path, "2", a=0.99, b=0.6) is None
    assert "accuracy of key=b changed from 0.7 to 0.6" in caplog.text
    assert "key=a" not in caplog.text
    assert run(gate, tmp_path, "3", a=0.86, b=0.7) == "3"


def test_what_it_compares_with_survives_a_restart_and_is_the_last_export(tmp_path):
    writes = Writes()
    run(SliceGate(writes, metric="accuracy", largest_fall=0.05), tmp_path, "1", a=0.9)
    again = SliceGate(writes, metric="accuracy", largest_fall=0.05)
    assert run(again, tmp_path, "2", a=0.8) is None
    assert run(again, tmp_path, "3", a=0.86) == "3"
    assert run(again, tmp_path, "4", a=0.82) == "4"
    assert writes.paths == ["1", "3", "4"]


def test_an_exporter_that_declines_changes_nothing(tmp_path):
    writes = Writes("never")
    gate = SliceGate(writes, metric="accuracy", largest_fall=0.05)
    assert run(gate, tmp_path, "1", a=0.9) is None
    writes.how = "at once"
    assert run(gate, tmp_path, "2", a=0.5) == "2"


def test_an_export_in_the_background_counts_once_it_is_there(tmp_path):
    gate = SliceGate(Writes("in the background"), metric="accuracy", largest_fall=0.05)
    assert run(gate, tmp_path, "1", a=0.9) is None
    assert gate.wait() == "1"
    assert run(gate, tmp_path, "2", a=0.5) is None
    assert gate.wait() is None


class Killed(BaseException):
    """Simulates a kill, after which nothing is cleaned up."""


class WritesAndIsKilled(Writes):
    """Exports to the folder that readers see, and is killed before its caller hears of it, or before the export."""

    def __init__(self, *names):
        super().__init__()
        self.names = names

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        for name in self.names:
            (Path(export_path) / name).mkdir(parents=True)
        raise Killed


def test_a_kill_after_the_export_leaves_its_values(tmp_path):
    run(SliceGate(Writes(), metric="accuracy", largest_fall=0.05), tmp_path, "1", a=0.8)
    for names, value in ((["1700000000"], 0.9), ([], 0.99)):
        with pytest.raises(Killed):
            run(SliceGate(WritesAndIsKilled(*names), metric="accuracy", largest_fall=0.05), tmp_path, "2", a=value)
    writes = Writes("never")  # an exporter that has exported this evaluation returns None
    again = SliceGate(writes, metric="accuracy", largest_fall=0.05)
    assert run(again, tmp_path, "2", a=0.9) is None
    again.wait()
    writes.how = "at once"
    assert run(again, tmp_path, "3", a=0.8) is None, "0.9 is exported"
    assert run(again, tmp_path, "4", a=0.86) == "4"
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["1700000000", "slices.json"]


def test_limits_small_slices_and_errors(tmp_path):
    least = SliceGate(Writes(), metric="accuracy", largest_fall=1, at_least=0.6)
    assert run(least, tmp_path, "1", a=0.9, b=0.5) is None
    assert run(least, tmp_path, "2", a=0.9, few=0.5) == "2"
    assert run(least, tmp_path, "3", a=0.9, b=float("nan")) is None
    error = SliceGate(Writes(), metric="rmse", largest_fall=0.1, higher_is_better=False)
    folder = str(tmp_path / "other")
    assert error.export(None, folder, "1", result("rmse", a=1.0), False) == "1"
    assert error.export(None, folder, "2", result("rmse", a=1.2), False) is None
    assert error.export(None, folder, "3", result("rmse", a=0.2), False) == "3"


def test_refusals(tmp_path):
    with pytest.raises(ArgumentTypeError, match="needs an Exporter"):
        SliceGate("best", metric="accuracy", largest_fall=0.1)
    with pytest.raises(ArgumentError, match="largest_fall"):
        SliceGate(Writes(), metric="accuracy", largest_fall=-0.1)
    gate = SliceGate(Writes(), metric="auc", largest_fall=0.1)
    with pytest.raises(ArgumentError, match=r"no number 'auc' by slice\. It has \['accuracy'\]"):
        run(gate, tmp_path, "1", a=0.9)
    with pytest.raises(ArgumentError, match=r"slices=\[\.\.\.\]"):
        gate.export(None, str(tmp_path), "1", {"loss": 0.5}, False)
