"""Tests of directories that users name: URLs are refused before anything is written, and `~` is the home directory."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.plugins import Component, using_plugins


def model_fn(features: Any, mode: str) -> Any:
    return ec.EstimatorSpec(mode, predictions=features)


def box(url: str, *, options: object) -> str:
    return url


@pytest.mark.parametrize("url", ["gs://bucket/run", "s3://bucket/run", "memory://run", "https://host/run"])
def test_a_url_without_its_package_is_refused_and_no_folder_appears(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugins, scheme = ec.Plugins(autoload=False, environ={}), url.partition("://")[0]
    absent = f"no installed package provides storage for {scheme}://"
    with pytest.raises(ArgumentError, match=absent) as refused:
        ec.Estimator(model_fn, url, plugins=plugins)
    assert (
        str(refused.value).split("\n")[0]
        == f"{absent}. Known schemes: file://. For a directory, give its absolute path."
    )
    assert str(refused.value).count(f"{scheme}:") == 1
    assert f"no storage {scheme!r}" not in str(refused.value)
    with pytest.raises(ArgumentError, match=absent):
        ec.Estimator(model_fn, config=ec.RunConfig(model_dir=url), plugins=plugins)
    with pytest.raises(ArgumentError, match="compile_cache is"):
        ec.RunConfig(compile_cache=url)
    estimator = ec.Estimator(model_fn, str(tmp_path / "run"), plugins=plugins)
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})
    with pytest.raises(ArgumentError, match=absent):
        estimator.export_saved_model(url, receiver)
    assert not any(":" in path.name for path in tmp_path.iterdir())


def test_a_directory_with_the_name_of_a_scheme_is_reached_as_the_message_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugins = ec.Plugins(autoload=False, environ={})
    with pytest.raises(ArgumentError, match=r"For a directory, give its absolute path\."):
        ec.Estimator(model_fn, Path("run:/x"), plugins=plugins)
    assert ec.Estimator(model_fn, Path("run:/x").absolute(), plugins=plugins).model_dir == f"{tmp_path}/run:/x"


def test_a_scheme_of_another_package_needs_the_one_that_keeps_working_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("estimator_storage", "estimator_storage.at_urls"):
        monkeypatch.setitem(sys.modules, module, None)
    plugin: Any = ModuleType("acme_box")
    plugin.ESTIMATOR_PLUGIN_API = (1, 0)
    record = Component(kind="storage", name="box", target="tests.facade.test_directories:box", summary="A box.")
    plugin.estimator_components = lambda: [record]
    plugins, url = ec.Plugins(autoload=False, environ={}, extra=[plugin]), f"box://{tmp_path}/run"
    # If the package is installed, this registry leaves it out.
    cure = "estimator-storage: pip install estimator-storage|needs estimator-storage .* the allow list is empty"
    with pytest.raises(ArgumentError, match=cure):
        ec.Estimator(model_fn, url, plugins=plugins)
    with using_plugins(plugins):
        with pytest.raises(ArgumentError, match=cure):
            ec.load_variables(f"{url}/checkpoints/10")
        assert main(["checkpoints", url]) == 2
    assert re.search(cure, capsys.readouterr().err)


def test_the_home_directory_is_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ec.RunConfig(model_dir="~/run").model_dir == str(tmp_path / "run")
    assert ec.Estimator(model_fn, "~/run").model_dir == str(tmp_path / "run")
    assert ec.Estimator(model_fn, "~/run", ec.RunConfig(model_dir=str(tmp_path / "run"))).model_dir == str(
        tmp_path / "run"
    )


@pytest.mark.parametrize("inside", ["checkpoints/2", "checkpoints/2/", "checkpoints", "checkpoints/2/mine", "latest"])
def test_a_model_dir_inside_a_run_is_refused_and_the_run_named(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(features: Any, mode: str) -> Any:
        loss = ((features["x"] * ec.get_variable("slope", ())) ** 2).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    inputs = ec.inputs.numpy_input_fn({"x": np.ones(8, np.float32)}, batch_size=4, shuffle=False)
    ec.Estimator(trained, str(tmp_path / "run")).train(inputs)
    (tmp_path / "run" / "latest").symlink_to(tmp_path / "run" / "checkpoints" / "2")
    monkeypatch.chdir(tmp_path / "run")
    for model_dir in (str(tmp_path / "run" / inside), inside):
        with pytest.raises(
            ArgumentError, match=f"is inside the run {tmp_path}/run, .* Give model_dir='{tmp_path}/run'"
        ):
            ec.Estimator(trained, model_dir)
    other = str(tmp_path / "other" / inside)
    assert ec.Estimator(trained, other).train(inputs).latest_checkpoint() == str(Path(other) / "checkpoints" / "2")


@pytest.mark.parametrize("foreign", ["journal/1", "identity"])
def test_a_directory_of_checkpoints_beside_other_files_is_a_model_dir(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_bytes(b"\xff of another program")
    assert ec.Estimator(model_fn, str(tmp_path / "checkpoints")).model_dir == str(tmp_path / "checkpoints")


def test_a_directory_with_a_colon_is_no_url(tmp_path: Path) -> None:
    assert ec.RunConfig(model_dir=str(tmp_path / "a:b")).model_dir == str(tmp_path / "a:b")


@pytest.mark.parametrize(
    ("words", "reached"),
    [
        (["checkpoints", "~/run"], ["checkpoints", "{}/run"]),
        (["run", "--model-dir=~/run", "--hparams", "a=~/b"], ["run", "--model-dir={}/run", "--hparams", "a=~/b"]),
        (["launch", "~run", "--", "--log=~/log", "~/x"], ["launch", "~run", "--", "--log=~/log", "~/x"]),
    ],
)
def test_a_path_of_the_home_directory(
    words: list[str], reached: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    arrived: list[object] = []
    monkeypatch.setattr("estimator_core._cli.main._guarded", lambda given: arrived.append(given) or 0)
    assert main(words) == 0
    (given,) = arrived
    assert [given.command, *given.arguments] == [word.format(tmp_path) for word in reached]
