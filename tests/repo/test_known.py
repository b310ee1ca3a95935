"""Tests of the table that names the package of a component that is not installed: it equals the declarations of the
packages.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def script(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("known_script", root / ".ci" / "known.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_known_json_is_up_to_date(script: ModuleType) -> None:
    assert json.loads(script.TABLE.read_text()) == script.declared(), "run nox -s known"


def test_a_component_that_is_gone_or_new_is_noticed(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "TABLE", tmp_path / "known.json")
    monkeypatch.setattr("sys.argv", ["known.py"])
    assert script.main() == 0
    monkeypatch.setattr("sys.argv", ["known.py", "--check"])
    assert script.main() == 0
    table = json.loads(script.TABLE.read_text())
    del table["backend"]["gpu"]
    script.TABLE.write_text(json.dumps(table))
    assert script.main() == 1
    assert "run nox -s known" in capsys.readouterr().err
