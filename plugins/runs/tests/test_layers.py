"""Tests of files that include and override each other, settings of the command line, and the origin of each value."""

import json
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line_files import CODE, TOML, YAML, write_line

from estimator_core.cli import main
from estimator_runs import ConfigurationError, Layer, Origin, read_configuration, resolve
from estimator_runs.configuration.overrides import read_settings
from estimator_runs.configuration.toml import read_toml
from estimator_runs.configuration.yaml import read_yaml


def origins_of(read, *keys):
    return [str(read.resolved.origin(tuple(key.split(".")))) for key in keys]


def test_a_file_overrides_what_it_includes_and_the_command_line_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_line(tmp_path).rename("base.toml")
    Path("fast.toml").write_text("[hparams]\nrate = 0.5\n")
    Path("line.toml").write_text('include = ["base.toml", "fast.toml"]\n\n[train]\nmax_steps = 7\n')
    read = read_configuration(Path("line.toml"), ["run_config.tf_random_seed=3", "run_config.tf_random_seed=4"])
    assert (read.configuration.hparams, read.configuration.train.max_steps) == ({"rate": 0.5}, 7)
    assert read.configuration.run_config.tf_random_seed == 4
    assert origins_of(read, "hparams.rate", "train.max_steps", "model.function", "run_config.tf_random_seed") == [
        "fast.toml:2",
        "line.toml:4",
        "base.toml:2",
        "--set",
    ]


def test_code_is_found_from_the_file_that_names_it(tmp_path, monkeypatch):
    folder = tmp_path / "shared"
    folder.mkdir()
    write_line(folder)
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('include = "shared/line.toml"\n')
    program = read_configuration(Path("mine.toml")).program()
    experiment = program.experiment_fn(program.run_config("model"), program.hparams(""))
    assert experiment.train_steps == 20


def test_paths_of_the_run_config_may_be_beside_the_file_that_names_them(tmp_path, monkeypatch):
    folder = tmp_path / "shared"
    folder.mkdir()
    path = write_line(folder)
    path.write_text(path.read_text() + 'model_dir = "${here}/runs"\ncompile_cache = "none"\nremat = "none"\n')
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('include = "shared/line.toml"\n')
    config = read_configuration(Path("mine.toml")).program().run_config()
    assert Path(config.model_dir) == Path("shared/runs")
    assert (config.compile_cache, config.remat) == (None, "none")


def test_files_that_include_each_other_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text('include = "b.toml"\n')
    Path("b.toml").write_text('\ninclude = ["a.toml"]\n')
    with pytest.raises(ConfigurationError, match=r"b.toml:2: a.toml includes b.toml includes a.toml"):
        read_configuration(Path("a.toml"))


def test_a_file_may_be_included_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_line(tmp_path)
    Path("a.toml").write_text('include = ["line.toml", "b.toml"]\n')
    Path("b.toml").write_text('include = "line.toml"\n')
    assert read_configuration(Path("a.toml")).configuration.train.max_steps == 20


def test_more_layers_come_before_the_file(tmp_path):
    policy = Origin(source="policy")
    layer = Layer(whole=policy, values={"hparams": {"rate": 9.0, "depth": 2}}, origins={("hparams", "depth"): policy})
    read = read_configuration(write_line(tmp_path), more=[layer])
    assert read.configuration.hparams == {"rate": 0.3, "depth": 2}
    assert origins_of(read, "hparams.depth") == ["policy"]


def test_putting_layers_together_changes_none_of_them():
    origin = Origin(source="a")
    first = Layer(whole=origin, values={"a": {"b": [1]}}, origins={})
    second = Layer(whole=origin, values={"a": {"b": [2], "c": 3}}, origins={})
    assert resolve([first, second]).values == {"a": {"b": [2], "c": 3}}
    assert first.values == {"a": {"b": [1]}}
    resolve([first, second]).values["a"]["b"].append(4)
    assert second.values["a"]["b"] == [2]


def test_a_list_is_replaced_with_the_origins_of_its_items():
    base = read_toml('[[hooks]]\nname = "a"\n[[hooks]]\nname = "b"\n', "a.toml", Path())
    found = resolve([base, read_toml('hooks = ["c"]\n', "b.toml", Path())])
    assert found.values == {"hooks": ["c"]}
    assert str(found.origin(("hooks", 1, "name"))) == "b.toml:1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1e-3", 1e-3),
        ("a=text", "text"),
        ("a=x=y", "x=y"),
        ("a=[1, 2]", [1, 2]),
        ("a=(1, 2)", [1, 2]),
        ("a=True", True),
        ("a=None", None),
        ("a=", ""),
        ("a=1\nb=2", "1\nb=2"),
    ],
)
def test_values_of_the_command_line(text, value):
    assert read_settings([text])[0].values == {"a": value}


def test_quoted_keys_of_the_command_line():
    (layer,) = read_settings(['a."b.c".d=1'])
    assert layer.values == {"a": {"b.c": {"d": 1}}}


@pytest.mark.parametrize("text", ["a", "=1", "a..b=1", "a b=1"])
def test_settings_of_another_form_are_refused(text):
    with pytest.raises(ConfigurationError, match="write KEY=VALUE"):
        read_settings([text])


def test_yaml_says_what_toml_says(tmp_path):
    pytest.importorskip("ruamel.yaml")
    yaml = read_yaml(YAML, "line.yaml", Path())
    assert yaml.values == read_toml(TOML, "line.toml", Path()).values
    assert [yaml.origins[path].line for path in [("model", "function"), ("inputs", "eval", "args", "epochs")]] == [2, 7]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1\nb: 2\n", "x.yaml:2", "this is not YAML"),
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3", "the key 'a' is already in line 1"),
        ("a:\n  1: x\n", "x.yaml:2", "the key '1' is not a string"),
        ("a:\n  b: 2020-01-01\n", "x.yaml:2", "is read as a timestamp. Put it in quotes"),
        ("a: !!python/object:os.system x\n", "x.yaml:1", "is read as a"),
        ("a: &a [*a]\n", "x.yaml:1", "an alias leads back to itself"),
        ("- a\n", "x.yaml", "a configuration is a table"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2", "this is not YAML"),
    ],
)
def test_broken_yaml(text, place, words):
    pytest.importorskip("ruamel.yaml")
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(text, "x.yaml", Path())
    assert str(caught.value).startswith(f"{place}: ")
    assert words in str(caught.value)


def test_aliases_of_aliases_end():
    pytest.importorskip("ruamel.yaml")
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]
    with pytest.raises(ConfigurationError, match="too many values"):
        read_yaml("\n".join(lines), "x.yaml", Path())


KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.integers(-5, 5), st.sampled_from(['"x"', '"""\n[x]\n"""', "'''\na = 1\n'''", "[\n1,\n2]", "{}"]))


@given(st.lists(st.tuples(st.sampled_from(["", "\n", "# [note]\n"]), KEYS, SCALARS), unique_by=lambda one: one[1]))
def test_every_key_of_toml_has_the_line_where_it_stands(statements):
    text, expected = "", {}
    for number, (before, key, value) in enumerate(statements):
        text += f"{before}[[t{number}.u]]\n[[t{number}.u]]\n"
        expected[f"t{number}", "u", 1, key] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    layer = read_toml(text, "x.toml", Path())
    assert {path: layer.origins[path].line for path in expected} == expected


def test_show_prints_the_whole_with_origins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_line(tmp_path, TOML + '\n[plugins.options.estimator-hooks]\ntoken = "abc"\n')
    assert main(["config", "show", "line.toml", "--set", "hparams.layers=[2, 3]"]) == 0
    text = capsys.readouterr().out
    lines = {line.partition(" = ")[0]: line.rpartition("# ")[2] for line in text.splitlines()}
    assert lines["hparams.layers"] == "--set"
    assert lines["hparams.rate"] == "line.toml:19"
    assert lines["run_config.save_checkpoints_secs"] == "default"
    assert "abc" not in text
    shown = tomllib.loads(text)
    assert shown["hparams"] == {"rate": 0.3, "layers": [2, 3]}
    assert shown["run_config"]["save_checkpoints_secs"] == "none"
    assert shown["run_config"]["model_dir"] == "runs/line"
    assert lines["run_config.model_dir"] == "default"


def test_what_is_shown_is_a_configuration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_line(tmp_path)
    main(["config", "show", "line.toml"])
    Path("whole.toml").write_text(capsys.readouterr().out)
    main(["config", "show", "whole.toml", "--json"])
    again = {row["key"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    main(["config", "show", "line.toml", "--json"])
    assert {row["key"]: row["value"] for row in json.loads(capsys.readouterr().out)} == again


def test_runs_from_a_file_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_line(tmp_path)
    assert main(["run", "line.toml", "--set", "train.max_steps=10"]) == 0
    assert main(["config", "run", "line.toml", "--hparams", "rate=0.25", "--model-dir", "runs/line"]) == 0
    assert "global_step  20" in capsys.readouterr().out
    assert json.loads(Path("runs/line/run.json").read_text())["hparams"] == {"rate": 0.25}


def test_a_program_in_python_is_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = CODE.replace("import estimator_core as ec", "import estimator_core as ec\nHPARAMS = ec.HParams(rate=0.1)")
    (tmp_path / "line_program.py").write_text(
        program + "\n\ndef experiment_fn(run_config, hparams):\n"
        "    estimator = ec.Estimator(model_fn, config=run_config, params=hparams)\n"
        "    return ec.Experiment(estimator, batches(8), batches(8, 1), train_steps=3)\n"
    )
    Path("line.toml").write_text('hooks = ["a_hook"]\n[program]\nfile = "line_program.py"\n[hparams]\nrate = 0.2\n')
    read = read_configuration(Path("line.toml"), ["hooks=[]", "run_config.default_hooks=false"])
    program = read.program()
    assert program.hparams("").values() == {"rate": 0.2}
    assert program.hparams("rate=0.5").values() == {"rate": 0.5}
    experiment = program.experiment_fn(program.run_config("model"), program.hparams(""))
    assert experiment.train().get_variable_value("slope") > 0


@pytest.mark.parametrize("name", ["line_program.py", "line_program"])
def test_a_program_of_which_code_is_named_runs_once(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "line_program", raising=False)
    (tmp_path / "line_program.py").write_text(
        "with open('times', 'a') as file:\n    file.write('x')\n\n\n"
        "def experiment_fn(run_config, hparams):\n    return None\n\n\ndef receiver():\n    return None\n"
    )
    Path("line.toml").write_text(f'[program]\nfile = "line_program.py"\n[serving]\nfunction = "{name}:receiver"\n')
    read_configuration(Path("line.toml")).program()
    assert Path("times").read_text() == "x"


def test_a_configuration_may_be_the_program_of_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("inner_program.py").write_text(
        "import estimator_core as ec\n\nHPARAMS = ec.HParams(rate=0.1)\n\n\n"
        "def experiment_fn(run_config, hparams):\n    return None\n"
    )
    Path("inner.toml").write_text('[program]\nfile = "inner_program.py"\n')
    Path("outer.toml").write_text('[program]\nfile = "inner.toml"\n[hparams]\nrate = 0.2\n')
    assert read_configuration(Path("outer.toml")).program().default_hparams.values() == {"rate": 0.2}
