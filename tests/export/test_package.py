"""Tests of the separate package that makes exports: the messages if it is absent or forbidden."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core.errors import ArgumentError, PluginLookupError
from estimator_core.testing import array_format, tiny_estimator, tiny_input_fn, tiny_receiver_fn


def export(tmp_path: Path, plugins: Plugins, format_name: str = "arrays") -> str:
    estimator = tiny_estimator(tmp_path / "model", plugins=plugins).train(tiny_input_fn(), steps=1)
    return estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format=format_name)


def with_format(**settings: Any) -> Plugins:
    return Plugins(autoload=False, extra=[array_format], environ={}, **settings)


def test_an_absent_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimator_signatures", None)
    with pytest.raises(ArgumentError, match="An export comes with estimator-signatures: pip install estimator-signat"):
        export(tmp_path, with_format())
    assert not (tmp_path / "exports").exists()


@pytest.mark.parametrize("name", ["load", "RawSignature"])
def test_a_name_of_the_absent_package_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimator_signatures", None)
    with pytest.raises(ModuleNotFoundError, match=rf"^estimator_core\.export\.{name} comes with estimator-sig"):
        getattr(ec.export, name)


def test_the_package_of_an_unknown_format_is_named_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimator_signatures", None)
    with pytest.raises(PluginLookupError, match="estimator-exporters"):
        export(tmp_path, with_format(), "stablehlo")


def test_a_forbidden_package_exports_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"An export needs estimator-signatures, which is blocked by name"):
        export(tmp_path, with_format(block=["estimator-signatures"]))
    assert not (tmp_path / "exports").exists()


def test_an_allow_list_of_plugins_need_not_name_it(tmp_path: Path) -> None:
    assert Path(export(tmp_path, with_format())).is_dir()
