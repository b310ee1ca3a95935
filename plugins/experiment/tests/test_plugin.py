"""The plugin as installed keeps the contract of plugins, and the package that its scaffold writes that of its kind."""

import importlib
import json
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.testing import PluginSuite
from estimator_testing.cli.scaffold import write_package


class TestPlugin(PluginSuite):
    plugin = "experiment"


def test_a_new_program_format_refuses_hyperparameters_that_its_program_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package("acme-form", "program_format", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "acme-form" / "src"))
    module = importlib.import_module("acme_form.program_format")
    (read,) = [value for name, value in vars(module).items() if name.startswith("Acme")]
    (tmp_path / "train.py").write_text("def experiment_fn(run_config, hparams): ...\n")
    file = tmp_path / "train.acme-form"
    file.write_text(json.dumps({"program": "train.py"}))
    assert read(file, []).default_hparams is None
    file.write_text(json.dumps({"program": "train.py", "hparams": {"rate": 0.5}}))
    with pytest.raises(ArgumentError, match=r"train.acme-form sets rate, but .*train.py defines no HPARAMS"):
        read(file, [])
