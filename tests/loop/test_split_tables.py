"""Tests of tables that the model splits: they are split in every call of a process, whichever call is first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimator_core.testing import run_with_devices

SPLIT = ["data"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns how the table is split in the calls of several Estimators. Each begins with a different call."""
    folder = tmp_path_factory.mktemp("split")
    return json.loads(run_with_devices(4, PROGRAM, str(Path(folder, "run"))).splitlines()[-1])


@pytest.mark.parametrize("first", ["train", "evaluate", "predict", "variables", "untrained"])
def test_every_call_splits_the_table(seen: dict[str, Any], first: str) -> None:
    assert set(seen[first]) == {"eval", "train"}
    for splits in seen[first].values():
        assert splits == [SPLIT] * len(splits)


def test_a_mode_that_does_not_ask_for_it_does_not_decide_for_training(seen: dict[str, Any]) -> None:
    assert seen["plain"]["train"][-1] == SPLIT


PROGRAM = """
import json, sys
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np, optax
import estimator_core as ec
from estimator_core.model import WholeTable

@dataclass(frozen=True)
class Split(WholeTable):
    sharding: tuple = ("data",)

def model_fn(features, labels, mode, params):
    access = WholeTable() if params == mode else Split()
    y = ec.sparse_lookup("table", features["id"], (8, 2), jax.nn.initializers.ones, access=access).sum(1)
    loss = None if labels is None else jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=optax.adam(0.1))

ids = np.arange(8, dtype=np.int32)
batches = lambda: [({"id": ids}, np.zeros(8, np.float32))] * 2
features = lambda: [{"id": ids}]
found = {}

class Look(ec.Hook):
    def __init__(self, seen):
        self.seen = seen

    def after_create(self, run):
        self.look(run)

    def before_step(self, run, step):
        self.look(run)

    def look(self, run):
        table = run.live.ready.variables["table"]
        self.seen.setdefault(run.mode, []).append(list(table.sharding.spec))

def run(first, model_dir, params="", **config):
    config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, mesh={"data": -1}, **config)
    estimator = ec.Estimator(model_fn, config=config, params=params)
    seen = found[first] = {}
    look = [Look(seen)]
    if first == "train":
        estimator.train(batches, hooks=look)
    if first in ("predict", "untrained", "plain"):
        list(estimator.predict(features))
    if first == "variables":
        estimator.variables
    if first != "plain":
        estimator.evaluate(batches, hooks=look)
    estimator.train(batches, hooks=look)

for first in ("train", "evaluate", "predict", "variables"):
    run(first, sys.argv[1])
run("untrained", sys.argv[1] + "-new", allow_untrained=True)
run("plain", sys.argv[1] + "-plain", params="infer", allow_untrained=True)
print(json.dumps(found))
"""
