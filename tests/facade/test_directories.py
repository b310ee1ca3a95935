"""Directories that users name: URLs are refused before anything is written, and `~` is the home directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError


def model_fn(features: Any, mode: str) -> Any:
    return ec.EstimatorSpec(mode, predictions=features)


@pytest.mark.parametrize("url", ["gs://bucket/run", "s3://bucket/run", "memory://run", "https://host/run"])
def test_a_url_without_its_package_is_refused_and_no_folder_appears(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugins, scheme = ec.Plugins(autoload=False, environ={}), url.partition("://")[0]
    absent = f"no installed package brings storage for {scheme}://"
    with pytest.raises(ArgumentError, match=absent):
        ec.Estimator(model_fn, url, plugins=plugins)
    with pytest.raises(ArgumentError, match=absent):
        ec.Estimator(model_fn, config=ec.RunConfig(model_dir=url), plugins=plugins)
    with pytest.raises(ArgumentError, match="compile_cache is"):
        ec.RunConfig(compile_cache=url)
    estimator = ec.Estimator(model_fn, str(tmp_path / "run"), plugins=plugins)
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})
    with pytest.raises(ArgumentError, match=absent):
        estimator.export_saved_model(url, receiver)
    assert not any(":" in path.name for path in tmp_path.iterdir())


def test_the_home_directory_is_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ec.RunConfig(model_dir="~/run").model_dir == str(tmp_path / "run")
    assert ec.Estimator(model_fn, "~/run").model_dir == str(tmp_path / "run")
    assert ec.Estimator(model_fn, "~/run", ec.RunConfig(model_dir=str(tmp_path / "run"))).model_dir == str(
        tmp_path / "run"
    )


def test_a_directory_with_a_colon_is_no_url(tmp_path: Path) -> None:
    assert ec.RunConfig(model_dir=str(tmp_path / "a:b")).model_dir == str(tmp_path / "a:b")
