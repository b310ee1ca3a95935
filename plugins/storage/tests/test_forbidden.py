"""Tests that a blocked package reads and writes nothing at a URL, including `file://`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins
from estimator_core.storage import copied_files, local_copy, open_storage, published_file
from estimator_core.testing import tiny_estimator, tiny_input_fn, tiny_receiver_fn

BY_SCHEME = {
    "s3": "estimator-storage .* is blocked: blocked by name",
    "file": r"needs estimator-storage \S+, which is not in use: blocked by name \(block list: estimator-storage\)",
}


def publish(url: str, plugins: Plugins) -> None:
    with published_file(f"{url}/new", plugins) as path:
        path.write_text("x")


def train(url: str, plugins: Plugins) -> None:
    tiny_estimator(f"{url}/model", plugins=plugins).train(tiny_input_fn(), steps=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.csv").write_text("x")
    return tmp_path / "there"


@pytest.mark.parametrize(
    "call",
    [
        lambda url, plugins: copied_files(f"{url}/a.csv", plugins),
        lambda url, plugins: local_copy(url, plugins),
        publish,
        train,
    ],
    ids=["copied_files", "local_copy", "published_file", "train"],
)
@pytest.mark.parametrize("scheme", BY_SCHEME)
def test_a_blocked_package_touches_no_url(folder: Path, call: Callable[[str, Plugins], object], scheme: str) -> None:
    plugins = Plugins(block=["estimator-storage"], environ={})
    with pytest.raises(ArgumentError, match=BY_SCHEME[scheme]):
        call(f"{scheme}://{folder}", plugins)
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a model_dir in which this process has trained, so that a working copy exists."""
    url = f"file://{tmp_path_factory.mktemp('store')}/model"
    tiny_estimator(url).train(tiny_input_fn(), steps=1)
    return url


def test_a_model_dir_that_the_process_has_used_before(trained: str) -> None:
    with pytest.raises(ArgumentError, match=BY_SCHEME["file"]):
        tiny_estimator(trained, plugins=Plugins(block=["estimator-storage"], environ={}))
    assert tiny_estimator(trained).latest_checkpoint() is not None


def evaluate(estimator: ec.Estimator, url: str, folder: Path) -> object:
    return estimator.evaluate(tiny_input_fn(), steps=1, checkpoint_path=url)


def predict(estimator: ec.Estimator, url: str, folder: Path) -> object:
    return next(estimator.predict(tiny_input_fn(), checkpoint_path=url))


def predictor(estimator: ec.Estimator, url: str, folder: Path) -> object:
    return estimator.predictor(url)({"x": np.ones((1, 1), np.float32)})


def export(estimator: ec.Estimator, url: str, folder: Path) -> object:
    return estimator.export_saved_model(str(folder / "exports"), tiny_receiver_fn, checkpoint_path=url)


@pytest.mark.parametrize("call", [evaluate, predict, predictor, pytest.param(export, marks=pytest.mark.plugins)])
def test_a_blocked_package_reads_no_checkpoint(
    trained: str, tmp_path: Path, call: Callable[[ec.Estimator, str, Path], object]
) -> None:
    plugins = Plugins(block=["estimator-storage"], environ={})
    with pytest.raises(ArgumentError, match=BY_SCHEME["file"]):
        call(tiny_estimator(tmp_path / "model", plugins=plugins), trained, tmp_path)
    assert call(tiny_estimator(tmp_path / "model"), trained, tmp_path)


@pytest.mark.plugins  # estimator-warm-start
@pytest.mark.parametrize("trains", [True, False])
def test_a_blocked_package_reads_no_first_values(trained: str, tmp_path: Path, trains: bool) -> None:
    plugins = Plugins(block=["estimator-storage"], environ={})
    model_fn = tiny_estimator(tmp_path).model_fn
    estimator = ec.Estimator(model_fn, str(tmp_path / "model"), warm_start_from=trained, plugins=plugins)
    with pytest.raises(ArgumentError, match=BY_SCHEME["file"]):
        estimator.train(tiny_input_fn(), steps=1) if trains else estimator.evaluate(tiny_input_fn(), steps=1)
    assert estimator.latest_checkpoint() is None


@pytest.mark.parametrize("environ", [{"ESTIMATOR_PLUGINS": ""}, {"ESTIMATOR_PLUGINS_BLOCK": "Estimator_Storage"}])
def test_its_code_is_not_imported(folder: Path, environ: dict[str, str]) -> None:
    program = (
        "import sys\nfrom estimator_core.errors import ArgumentError\nfrom estimator_core.storage import copied_files\n"
        f"try:\n    copied_files('file://{folder}/a.csv')\nexcept ArgumentError as error:\n    print(error)\n"
        "print(any(name.startswith('estimator_storage') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=_clean() | environ, capture_output=True, text=True)
    assert "needs estimator-storage" in done.stdout, done.stderr
    assert done.stdout.endswith("\nFalse\n")


def test_one_that_may_load_does(folder: Path) -> None:
    plugins = Plugins(only=["estimator-storage"], environ={})
    assert [path.read_text() for path in copied_files(f"file://{folder}/*.csv", plugins)] == ["x"]


def test_a_directory_named_as_a_url_is_the_core_s_own(folder: Path) -> None:
    storage = open_storage(f"file://{folder}", Plugins(block=["estimator-storage"], environ={}))
    assert bytes(storage.get("a.csv")) == b"x"


def _clean() -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {key: value for key, value in os.environ.items() if not key.startswith("ESTIMATOR_")} | {"PYTHONPATH": path}
