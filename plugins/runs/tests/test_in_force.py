"""Tests that `config show` and `plugins policy` report the same plugins and origins, from one resolver."""

import json
import tomllib
from pathlib import Path

import pytest
from line_files import TOML, write_line

from estimator_core.cli import main

pytest.importorskip("estimator_policy")
pytestmark = pytest.mark.plugins
POLICY = """
[plugins]
block = ["free-widgets"]
default_hooks = ["estimator-hooks"]

[plugins.overrides]
head.binary_class = "acme-heads"
"""


#: A file without a setting for hooks that plugins add.
WITHOUT = TOML.replace("default_hooks = false\n", "")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "estimator.toml").write_text(POLICY)
    return tmp_path


def rows(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_both_name_the_same_value_and_origin(project, capsys):
    write_line(project, WITHOUT)
    shown = {row["key"]: (row["value"], row["origin"]) for row in rows(capsys, "config", "show", "line.toml")}
    policy = {row["name"]: (row["value"], row["origin"]) for row in rows(capsys, "plugins", "policy")}
    where = f"policy {project / 'estimator.toml'}"
    assert policy["block"] == (["free-widgets"], where)
    for name, found in policy.items():
        if name == "default_hooks":
            assert shown["run_config.default_hooks"] == found == (["estimator-hooks"], where)
        else:
            assert shown[f"plugins: {name}"] == found


def test_the_file_and_set_are_stronger_than_the_policy_as_far_as_it_allows(project, monkeypatch, capsys):
    write_line(project, WITHOUT)
    text = (project / "line.toml").read_text()
    line = text.count("\n") + 2
    (project / "line.toml").write_text(f'{text}\n[plugins]\nblock = ["acme-one"]\n')
    monkeypatch.setenv("ESTIMATOR_PLUGINS_BLOCK", "acme-two")
    words = ["config", "show", "line.toml", "--set", 'run_config.default_hooks=["estimator-hooks", "other"]']
    shown = {row["key"]: (row["value"], row["origin"]) for row in rows(capsys, *words)}
    where = f"policy {project / 'estimator.toml'}"
    assert shown["run_config.default_hooks"] == (["estimator-hooks"], f"--set, as far as the {where} allows")
    assert shown["plugins.block"] == (
        ["free-widgets", "acme-one", "acme-two"],
        f"{where} and line.toml:{line + 1} and environment variable ESTIMATOR_PLUGINS_BLOCK",
    )
    assert "plugins: block" not in shown


def test_the_text_is_still_a_configuration(project, capsys):
    write_line(project, WITHOUT)
    assert main(["config", "show", "line.toml"]) == 0
    text = capsys.readouterr().out
    assert tomllib.loads(text)["run_config"]["default_hooks"] == ["estimator-hooks"]
    (line,) = [line for line in text.splitlines() if line.startswith("# block")]
    assert line.split("  # ")[0].rstrip() == '# block: ["free-widgets"]'
    assert line.endswith(f"# policy {project / 'estimator.toml'}")
    Path("whole.toml").write_text(text)
    assert main(["config", "show", "whole.toml"]) == 0
