"""Tests that slices equal the metric on the filtered examples, for any batches, devices and processes."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest
import slice_program
from sklearn.metrics import accuracy_score

from estimator_core.testing import run_with_devices
from estimator_slices import rows_of

HERE = pathlib.Path(__file__).parent
PROGRAM = (HERE / "slice_program.py").read_text()


def expected():
    """Returns examples and metrics of each slice, by scikit-learn and numpy on the filtered rows."""
    features, labels = slice_program.data()
    score = 1 / (1 + np.exp(-(features["x"].astype(np.float64) @ [1.0, -0.5, 0.25, 0.0])))
    slices = [{}] + [{"sex": sex} for sex in ("female", "male")]
    slices += [{"pclass": pclass, "embarked": port} for pclass in (1, 2, 3) for port in ("C", "S", None)]
    found = []
    for one in slices:
        rows = np.ones(len(labels), bool)
        for name, value in one.items():
            rows &= np.array([each == value for each in features[name]])
        label, called, weight = labels[rows], (score[rows] > 0.5).astype(int), features["weight"][rows]
        values = {
            "accuracy": accuracy_score(label, called),
            "weighted": accuracy_score(label, called, sample_weight=weight),
            "brier": np.average((score[rows] - label) ** 2, weights=weight.astype(np.float64)),
            "scores": np.median(score[rows]),
            "counts": np.bincount(called, minlength=2).tolist(),
        }
        found.append((one, int(rows.sum()), values))
    return found


def assert_as_expected(rows):
    wanted = expected()
    assert sorted(json.dumps(row["slice"]) for row in rows) == sorted(json.dumps(one) for one, _, _ in wanted)
    by_slice = {json.dumps(row["slice"]): row for row in rows}
    for one, examples, values in wanted:
        row = by_slice[json.dumps(one)]
        assert row["examples"] == examples
        assert set(row["metrics"]) == set(values)
        for name, value in values.items():
            assert row["metrics"][name] == pytest.approx(value, abs=1e-6), (one, name)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The results of one device, in batches of 16."""
    return slice_program.evaluate(str(tmp_path_factory.mktemp("one")), 16)["slices"]


def test_equal_to_scikit_learn_on_each_filtered_subset(one):
    assert_as_expected(one)
    assert [row["slice"] for row in one[:3]] == [{}, {"sex": "female"}, {"sex": "male"}]


@pytest.mark.parametrize("batch_size", [1, pytest.param(70, marks=pytest.mark.slow), 203])
def test_any_batch_split_gives_the_same_and_the_same_intervals(one, batch_size, tmp_path):
    rows = slice_program.evaluate(str(tmp_path), batch_size)["slices"]
    assert_as_expected(rows)
    for row, other in zip(rows, one, strict=True):
        assert (row["slice"], row["examples"]) == (other["slice"], other["examples"])
        for name, ends in row["intervals"].items():
            assert ends == pytest.approx(other["intervals"][name], abs=1e-6)


@pytest.mark.slow
def test_eight_devices_give_the_same(one, tmp_path):
    found = json.loads(run_with_devices(8, PROGRAM, str(tmp_path), "20").splitlines()[-1])
    assert found["devices"] == 8
    assert_as_expected(found["rows"])
    assert found["rows"][3]["intervals"]["accuracy"] == pytest.approx(one[3]["intervals"]["accuracy"], abs=1e-6)


@pytest.mark.plugins  # estimator-cluster
@pytest.mark.parametrize("rows", ["17", "20"])
@pytest.mark.parametrize("how", ["dealt out", "divides itself", "whole"])
@pytest.mark.slow
def test_two_processes_give_the_same(tmp_path, how, rows):
    # 203 examples: one process has one row more, and batches of 17 make the last parts unequal. Batches of 20 are
    # divided over two processes, which draw half of each or, like files, all of it.
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), *sys.path]))
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE / "slice_program.py"), str(tmp_path), rows, address, str(index), "2", how],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        ended = [process.communicate(timeout=200) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], ended
    both = [json.loads(output.splitlines()[-1]) for output, _ in ended]
    assert both[0] == both[1]
    assert both[0]["devices"] == 2
    assert_as_expected(both[0]["rows"])


def test_results_are_rows_and_numbers_by_name(tmp_path):
    found = slice_program.evaluate(str(tmp_path), 64, groups=0)
    rows = rows_of(found)
    assert [row.name for row in rows[:4]] == ["all", "sex=female", "sex=male", "pclass=1,embarked=C"]
    assert all(not row.intervals for row in rows)
    assert found["accuracy/sex=female"] == rows[1].metrics["accuracy"]
    assert found["accuracy"] == rows[0].metrics["accuracy"]
    assert "counts/sex=female" not in found  # not a number
    assert "loss" not in rows[1].metrics  # a mean over batches is not a metric of examples
    written = json.loads((tmp_path / "eval" / "metrics.jsonl").read_text())["metrics"]
    assert written["slices"] == found["slices"]
    assert written["accuracy/sex=female"] == found["accuracy/sex=female"]
