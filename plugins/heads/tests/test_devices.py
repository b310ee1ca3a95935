"""Evaluation with heads gives the same metrics on 1, 3 and 8 devices, whatever the batch size."""

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
    """Whether a metric is a mean over batches, or looks at one batch at a time, and so depends on the batch size."""
    return head == "retrieval" or name == "loss" or name.startswith("loss/")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A directory of trained models, and what one device finds."""
    directory = tmp_path_factory.mktemp("trained")
    return directory, evaluated(directory, 1, 16)


# 101 examples: neither batch size divides them, and 3 and 8 devices divide neither batch.
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
    # Counts are the same to the bit.
    for name in ("accuracy", "span_f1", "span_precision", "span_recall"):
        assert others["tokens"][name] == alone["tokens"][name]
