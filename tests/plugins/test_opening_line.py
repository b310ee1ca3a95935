"""Tests of the log lines of a run about plugins: which ones are active, and how they differ from those of its
checkpoint.
"""

import logging

import numpy as np
import optax
import pytest

import estimator_core as ec

ADDS_A_HOOK = """
from estimator_core.hooks import Hook

def estimator_run_hooks(run):
    return [Hook()]
"""
NO_HOOKS = """
def estimator_components():
    return []
"""


def model_fn(features, mode):
    loss = ((features["x"] @ ec.get_variable("w", (3,))) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def batches():
    return iter([{"x": np.ones((4, 3), np.float32)}])


@pytest.fixture
def train(site, tmp_path, caplog):
    """Trains one more step with the plugins of the site, and returns the logged lines."""

    def once():
        caplog.clear()
        with caplog.at_level(logging.INFO, "estimator_core"):
            ec.Estimator(model_fn, str(tmp_path / "model"), plugins=site.plugins()).train(batches, steps=1)
        return [record.getMessage() for record in caplog.records]

    return once


def test_a_run_opens_with_the_plugins_that_take_part(site, train):
    site.add("tracker", ADDS_A_HOOK, version="2.0")
    site.add("broken", "import nothing_of_this_name\n")
    (line,) = [line for line in train() if line.startswith("plugins:")]
    assert "tracker 2.0" in line.partition(";")[0]
    assert "hooks added to every run by: tracker 2.0 (switch off: ESTIMATOR_PLUGINS_BLOCK=tracker)" in line
    assert "failed to load: broken" in line
    assert "nothing_of_this_name" in line


def test_many_packages_of_one_version_are_counted(site, train):
    for number in range(6):
        site.add(f"house{number}", NO_HOOKS, version="1.5")
    site.add("tracker", NO_HOOKS, version="2.0")
    (line,) = [line for line in train() if line.startswith("plugins:")]
    assert line == "plugins: 6 packages of version 1.5 (`estimator plugins`), tracker 2.0"


def test_a_resumed_run_names_the_plugins_that_differ(site, train):
    site.add("tracker", NO_HOOKS, version="2.0")
    site.add("gone", NO_HOOKS, version="0.3")
    assert not [line for line in train() if "was made with" in line]
    site.remove("gone")
    site.remove("tracker")
    site.add("tracker", NO_HOOKS, version="2.1")
    (told,) = (text for text in train() if "was made with" in text)
    assert [line.strip() for line in told.splitlines()] == [
        "this checkpoint was made with gone 0.3, which is not in use here: pip install gone==0.3",
        "this checkpoint was made with tracker 2.0; here it is 2.1",
    ]


def test_an_evaluation_of_a_checkpoint_names_them_too(site, train, tmp_path, caplog):
    site.add("gone", NO_HOOKS, version="0.3")
    train()
    site.remove("gone")
    caplog.clear()
    ec.Estimator(model_fn, str(tmp_path / "model"), plugins=site.plugins()).evaluate(batches)
    told = [record.getMessage() for record in caplog.records if "was made with" in record.getMessage()]
    assert told == ["this checkpoint was made with gone 0.3, which is not in use here: pip install gone==0.3"]
