"""Evaluation with heads returns the same metrics on 1, 3 and 8 devices, for every batch size."""

import json
import pathlib

import pytest

from estimator_core.testing import run_with_devices

PROGRAM = pathlib.Path(__file__).with_name("evaluate_heads.py").read_text()


def evaluated(directory, devices, batch_size):
    output = run_with_devices(devices, PROGRAM, str(directory), str(batch_size))
    found = json.loads(output.splitlines()[-1])
    assert found["devices"] == devices
    return found["metrics"]


def over_batches(head, name):
    """Whether a metric depends on the batch size, because it is a mean over batches or is computed per batch."""
    return head == "retrieval" or name == "loss" or name.startswith("loss/")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A directory of trained models, and the metrics on one device."""
    directory = tmp_path_factory.mktemp("trained")
    return directory, evaluated(directory, 1, 16)


# No batch size divides the 101 examples, and 3 and 8 devices do not divide their batch size.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("devices", "batch_size"), [(3, 16), (8, 20)], ids=["3", "8"])
def test_metrics_do_not_depend_on_devices_or_batch_size(trained, devices, batch_size):
    directory, alone = trained
    others = evaluated(directory, devices, batch_size)
    for head, expected in alone.items():
        assert set(others[head]) == set(expected)
        for name, value in others[head].items():
            if batch_size == 16 or not over_batches(head, name):
                assert value == pytest.approx(expected[name], rel=1e-6, abs=1e-9), (head, name)
    # Counts are bitwise the same.
    for name in ("accuracy", "span_f1", "span_precision", "span_recall"):
        assert others["tokens"][name] == alone["tokens"][name]
