"""Tests that the values a data contract learned are in the checkpoint, also if a URL names the checkpoint."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from plugins.storage.tests import runs


def learned(memory: Path) -> Any:
    """Returns the factor in a checkpoint.

    A contract may open any file of its memory, so the memory is on this machine.
    """
    assert memory.is_dir(), f"{memory} is not a directory of this machine"
    return ec.load_variables(memory, ["by"])["by"]


class Scaled:
    """Doubles the labels if the checkpoint holds a 2."""

    def open(self, source: Any, *, mode: str, memory: Path, check: bool) -> tuple[Any, Callable[[Any], Any] | None]:
        if mode == ec.ModeKeys.TRAIN:
            return source, None
        by = learned(memory)
        return source, lambda batch: (batch[0], batch[1] * by)

    def transforms(self, memory: Path) -> Sequence[Any]:
        learned(memory)
        return ()


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    ec.get_variable("by", initializer=np.float32(2.0), trainable=False)
    return runs.model_fn(features, labels, mode)


model_fn.data_contract = Scaled()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"file://{tmp_path_factory.mktemp('store')}/model"
    config = ec.RunConfig(model_dir=url, tf_random_seed=1, default_hooks=False)
    ec.Estimator(model_fn, config=config).train(runs.batches, max_steps=2)
    return url


@pytest.mark.parametrize("end", ["", "/checkpoints/2"])
def test_evaluation_reads_the_checkpoint_of_the_url(trained: str, end: str, tmp_path: Path) -> None:
    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False)
    estimator = ec.Estimator(model_fn, config=config)
    weights = ec.load_variables(trained)["weights"]
    features, labels = next(iter(runs.held_out()))
    expected = np.mean((features["x"] @ weights - 2 * labels) ** 2)
    found = estimator.evaluate(runs.held_out, checkpoint_path=trained + end)["loss"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def elsewhere(folder: Path) -> ec.Estimator:
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(folder / "other"), default_hooks=False))


def test_so_do_predictions(trained: str, tmp_path: Path) -> None:
    assert len(list(elsewhere(tmp_path).predict(runs.held_out, checkpoint_path=trained))) == 4


@pytest.mark.plugins
def test_so_do_exports(trained: str, tmp_path: Path) -> None:
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})
    made = elsewhere(tmp_path).export_saved_model(str(tmp_path / "out"), receiver, checkpoint_path=trained)
    assert Path(made).is_dir()
