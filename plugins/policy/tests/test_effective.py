"""Tests that `estimator plugins policy` prints the effective values, and the source of each value."""

import json
from pathlib import Path

import pytest

from estimator_core.cli import main
from estimator_core.config import RunConfig
from estimator_core.plugins import Plugins
from estimator_policy import Layer, effective_settings
from plugins.policy.tests.packages import install


def effective(environ, **arguments):
    found = effective_settings(environ, folder=Path.cwd(), **arguments)
    return {one.name: (one.value, one.origin) for one in found}


def test_every_source_is_named(site, policy):
    install(site, "acme-heads")
    file = policy('[plugins]\nblock = ["one"]\noptions.acme-heads.url = "policy"\noverrides.head.a = "acme-heads"\n')
    records = Plugins(only=["acme-heads"], environ={}).records()
    where = f"policy {file / 'estimator.toml'}"
    found = effective({"ESTIMATOR_PLUGINS": "acme-heads", "ESTIMATOR_PLUGINS_BLOCK": "two"}, plugins=records)
    assert found["allow"] == (("acme-heads",), "environment variable ESTIMATOR_PLUGINS")
    assert found["block"] == (("one", "two"), f"{where} and environment variable ESTIMATOR_PLUGINS_BLOCK")
    assert found["strict"] == (False, "default")
    assert found["option acme-heads.url"] == ("policy", where)
    assert found["override head.a"] == ("acme-heads", where)


def test_a_file_of_the_run_is_stronger_than_the_policy_and_weaker_than_the_code(policy):
    policy("[plugins]\n")
    run_file = Layer(origin="run.toml", values={"default_hooks": ("a",), "component.log": "a"})
    assert effective({}, run_file=[run_file])["default_hooks"] == (("a",), "run.toml")
    config = RunConfig(model_dir="m", default_hooks=["b"], plugins_lock="x", components={"log": "b"})
    found = effective({"ESTIMATOR_PLUGINS_LOCK": "y"}, run_file=[run_file], config=config)
    assert found["default_hooks"] == (("b",), "RunConfig")
    assert found["component.log"] == ("b", "RunConfig")
    assert found["lock"] == (("x", "y"), "RunConfig and environment variable ESTIMATOR_PLUGINS_LOCK")


def test_what_the_policy_forbids_is_left_out_of_what_others_ask_for(policy):
    policy('[plugins]\nallow = ["acme", "other"]\ndefault_hooks = false\nstrict = true\n')
    config = RunConfig(model_dir="m", default_hooks=["acme"])
    found = effective({"ESTIMATOR_PLUGINS": "Acme,free", "ESTIMATOR_STRICT_PLUGINS": "0"}, config=config)
    assert found["allow"][0] == ("Acme",)
    assert found["allow"][1].startswith("environment variable ESTIMATOR_PLUGINS, as far as the policy ")
    assert found["default_hooks"][0] == ()
    assert found["strict"][0] is True


@pytest.mark.parametrize("environ", [{}, {"ESTIMATOR_PLUGINS": ""}, {"ESTIMATOR_PLUGINS": "acme-heads,other-heads"}])
@pytest.mark.parametrize("text", ["", '[plugins]\nallow = ["acme-heads"]\n', '[plugins]\nblock = ["other-heads"]\n'])
def test_what_it_says_is_what_is_loaded(site, policy, environ, text):
    for name in ("acme-heads", "other-heads"):
        install(site, name)
    policy(text)
    found = effective(environ)
    allow, block = found["allow"][0], found["block"][0]
    loaded = {one.distribution for one in Plugins(environ=environ).records() if one.status == "loaded"}
    expected = {
        name for name in ("acme-heads", "other-heads") if (allow is None or name in allow) and name not in block
    }
    assert loaded & {"acme-heads", "other-heads"} == expected


def test_a_switch_is_told_from_the_environment(site, policy, monkeypatch, capsys):
    install(site, "acme-heads")
    policy("[plugins]\n")
    monkeypatch.setenv("ESTIMATOR_PLUGINS_BLOCK", "nobody")
    words = ["--plugins", "acme-heads", "--plugin-option", "acme-heads.url=there", "plugins", "policy"]
    assert main([*words, "--json"]) == 0
    found = {one["name"]: (one["value"], one["origin"]) for one in json.loads(capsys.readouterr().out)}
    assert found["allow"] == (["acme-heads"], "command line")
    assert found["option acme-heads.url"] == ("there", "command line")
    assert found["block"] == (["nobody"], "environment variable ESTIMATOR_PLUGINS_BLOCK")
    assert main(words) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("allow")]
    assert line.split() == ["allow", '["acme-heads"]', "command", "line"]
    monkeypatch.undo()


def test_a_stale_lock_can_be_written_anew(site, policy, capsys, monkeypatch):
    install(site, "acme-heads")
    project = policy('[plugins]\nallow = ["acme-heads"]\nlock = "estimator-plugins.lock"\n')
    assert main(["plugins", "lock"]) == 0
    assert capsys.readouterr().out.startswith("estimator-plugins.lock: acme-heads 1.0, estimator-core ")
    assert main(["plugins"]) == 0
    (site / "acme_heads" / "parts.py").write_text("class Part:\n    changed = True\n")
    capsys.readouterr()
    monkeypatch.setenv("ESTIMATOR_TRACE_PLUGINS", "0")  # another set of plugins, as in another process
    assert main(["plugins"]) == 1
    assert "here its code differs" in capsys.readouterr().err
    assert main(["--locked", "plugins", "lock"]) == 0
    monkeypatch.setenv("ESTIMATOR_TRACE_PLUGINS", "off")
    assert main(["--locked", "plugins"]) == 0
    rows = json.loads((project / "estimator-plugins.lock").read_text())["plugins"]
    assert [row["distribution"] for row in rows] == ["acme-heads", "estimator-core"]
