"""Broken configuration files: each is refused with file, line, key and what to do."""

import json

import pytest
from line_files import CODE, TOML

import estimator_core as ec
from estimator_core.cli import main
from estimator_runs import ConfigurationError
from estimator_runs.configuration.reading import read_configuration

PROGRAM = '[program]\nfile = "line_program.py"\n'
OLD_STYLE = (
    CODE + "\nHPARAMS = ec.HParams(rate=0.1, layers=[2])\n\n\ndef experiment_fn(run_config, hparams):\n    pass\n"
)


def changed(old, new):
    assert TOML.count(old) == 1
    return TOML.replace(old, new)


def added(text):
    return TOML + text


#: name: text, line, key, words of the message.
BROKEN = {
    "no value": (changed("rate = 0.3", "rate ="), 19, "", "this is not TOML: Invalid value"),
    "no quotes": (changed('"line_code.py:model_fn"', "line_code"), 2, "", "this is not TOML"),
    "a table twice": (added("[train]\n"), 25, "", "Cannot declare ('train',) twice"),
    "a key twice": (changed("rate = 0.3", "rate = 0.3\nrate = 1"), 20, "", "Cannot overwrite a value"),
    "an open string": (added('[plugins]\nonly = ["a]\n'), 26, "", "this is not TOML"),
    "an unknown table": (changed("[train]", "[trian]"), 15, "trian", "Did you mean 'train'?"),
    "an unknown key": (changed("max_steps", "max_step"), 16, "train.max_step", "Did you mean 'max_steps'?"),
    "a key of RunConfig": (
        changed("save_checkpoints_steps", "save_checkpoint_steps"),
        23,
        "run_config.save_checkpoint_steps",
        "Did you mean 'save_checkpoints_steps'?",
    ),
    "a key in the wrong table": (added("max_steps = 5\n"), 25, "run_config.max_steps", "It belongs in [train]."),
    "a removed argument": (added('device_fn = "x"\n'), 25, "run_config.device_fn", "there is no such key"),
    "a text for a number": (changed("= 20", '= "20"'), 16, "train.max_steps", "valid integer, given '20'"),
    "a number that is too small": (changed("= 20", "= 0"), 16, "train.max_steps", "greater than or equal to 1"),
    "a fraction for a whole number": (changed("= 10", "= 1.5"), 23, "run_config.save_checkpoints_steps", "integer"),
    "a truth for a number": (changed("= 10", "= true"), 23, "run_config.save_checkpoints_steps", "integer"),
    "a word that is none of them": (
        added('precision = "bfloat"\n'),
        25,
        "run_config.precision",
        "Did you mean 'bfloat16'?",
    ),
    "auto misspelt": (added('prefetch = "automatic"\n'), 25, "run_config.prefetch", "Did you mean 'auto'?"),
    "two cadences": (
        added("save_checkpoints_secs = 5\n"),
        25,
        "run_config.save_checkpoints_secs",
        "cannot be both set",
    ),
    "a negative seed": (changed("tf_random_seed = 1", "tf_random_seed = -1"), 22, "run_config.tf_random_seed", "-1"),
    "a role that is not there": (added('components = { logs = "x" }\n'), 25, "run_config.components", "logs"),
    "a mode of keep best": (
        added('keep_checkpoint_best = { metric = "loss", mode = "least" }\n'),
        25,
        "run_config.keep_checkpoint_best.mode",
        "should be 'min' or 'max', given 'least'",
    ),
    "a metric of keep best": (
        added('keep_checkpoint_best = { mode = "min" }\n'),
        25,
        "run_config.keep_checkpoint_best.metric",
        "is missing",
    ),
    "a table for a list": (added('[hooks]\nname = "goodput"\n'), 25, "hooks", "valid list"),
    "a hook without a name": (added("[[hooks]]\nargs = {}\n"), 25, "hooks[0].name", "is missing"),
    "a second hook without a name": (
        added('[[hooks]]\nname = "goodput"\n\n[[hooks]]\n# none\nnam = "x"\n'),
        30,
        "hooks[1].nam",
        "Did you mean 'name'?",
    ),
    "a hook that is not there": (added('[[hooks]]\nname = "goodputt"\n'), 25, "hooks[0]", "goodputt"),
    "a model that is not there": (
        changed('function = "line_code.py:model_fn"', 'component = "dnn_clasifier"'),
        2,
        "model.component",
        "dnn_clasifier",
    ),
    "two models": (changed("[model]", '[model]\ncomponent = "dnn_classifier"'), 3, "model.function", "write one of"),
    "an empty model": (changed('function = "line_code.py:model_fn"\n', ""), 1, "model", "write one of component"),
    "no model": (TOML.partition("\n\n")[2], None, "", "names no model"),
    "model and program": (added(PROGRAM), 1, "model", "cannot be combined with [program]"),
    "no input": (TOML.partition("[inputs")[0], None, "inputs", "[model] needs [inputs.train]"),
    "no training input": (changed("[inputs.train]", "[inputs.trian]"), 4, "inputs.trian", "Did you mean 'train'?"),
    "args of a model_fn": (
        changed("[inputs.train]", "[model.args]\nrate = 1\n\n[inputs.train]"),
        4,
        "model.args",
        "Move these there",
    ),
    "no such file of code": (
        changed("line_code.py:model_fn", "line_cod.py:model_fn"),
        2,
        "model.function",
        "Did you mean 'line_code.py'?",
    ),
    "no such function": (
        changed("line_code.py:model_fn", "line_code.py:modelfn"),
        2,
        "model.function",
        "Did you mean 'model_fn'?",
    ),
    "no function at all": (
        changed("line_code.py:model_fn", "line_code.py"),
        2,
        "model.function",
        "write package.module:name or file.py:name",
    ),
    "no such module": (
        changed("line_code.py:model_fn", "line_codes:model_fn"),
        2,
        "model.function",
        "there is no module 'line_codes'. Did you mean 'line_code'?",
    ),
    "an argument that is not there": (
        changed("args = { batch_size = 8 }", "args = { batchsize = 8 }"),
        6,
        "inputs.train.args.batchsize",
        "Did you mean 'batch_size'?",
    ),
    "an argument that is missing": (
        changed("args = { batch_size = 8 }", ""),
        4,
        "inputs.train.args",
        "batches needs batch_size",
    ),
    "an argument that is refused": (
        changed("args = { batch_size = 8 }", "args = { batch_size = 0 }"),
        6,
        "inputs.train.args.batch_size",
        "batches refuses it",
    ),
    "code that refuses": (
        added('[[hooks]]\nname = "logging_tensor"\nargs = { x = { call = "line_code.py:refuses", args = [2] } }\n'),
        27,
        "hooks[0].args.x",
        "takes no such argument",
    ),
    "code that refuses inside": (
        changed("batch_size = 8 }", 'batch_size = { call = "line_code.py:refuses", args = { rate = 2 } } }'),
        6,
        "inputs.train.args.batch_size.args.rate",
        "rate must be below 1",
    ),
    "a hyperparameter that is a table": (added("[hparams.deep]\nx = 1\n"), 25, "hparams.deep", "should be a number"),
    "a hyperparameter that is a date": (changed("0.3", "2020-01-01"), 19, "hparams.rate", "should be a number"),
    "an empty list": (changed("0.3", "[]"), 19, "hparams.rate", "should not be empty"),
    "a number of thousands of digits": (changed("0.3", "1" * 5000), None, "", "a number has too many digits"),
    "a reserved hyperparameter": (changed("rate = 0.3", "rate = 0.3\nvalues = 1"), 20, "hparams.values", "reserved"),
    "code of a relative module": (changed('"line_code.py:model_fn"', '".x:y"'), 2, "model.function", "not name code"),
    "a mixed list": (changed("0.3", '[1, "a"]'), 19, "hparams.rate", "items of one type"),
    "a program's hyperparameter": (
        PROGRAM + "[hparams]\nrat = 1\n",
        4,
        "hparams.rat",
        "Did you mean 'rate'?",
    ),
    "a program's hyperparameter of another type": (
        PROGRAM + '[hparams]\nrate = "fast"\n',
        4,
        "hparams.rate",
        "Could not cast",
    ),
    "a program that is not there": ('[program]\nfile = "line_programme.py"\n', 2, "program.file", "line_program.py"),
    "a function of a program": (PROGRAM + 'function = "experiment"\n', 3, "program.function", "experiment_fn"),
    "a program's plan": (PROGRAM + "[train]\nmax_steps = 3\n", 3, "train", "Remove one of them"),
    "an exporter without requests": (added('[[exporters]]\nname = "final"\n'), 25, "exporters", "[serving]"),
    "an exporter that is not there": (
        added('[[exporters]]\nname = "finale"\n\n[serving.features.x]\n'),
        25,
        "exporters[0]",
        "finale",
    ),
    "an empty serving": (added("[serving]\n"), 25, "serving", "write function, or features"),
    "a request of one number": (
        added("[serving.features.x]\nshape = []\n"),
        26,
        "serving.features.x.shape",
        "should begin with the axis of examples, as in [-1, 8]",
    ),
    "a request of another dtype": (
        added('[serving.features.x]\ndtype = "flaot32"\n'),
        26,
        "serving.features.x.dtype",
        "'flaot32' is not a dtype",
    ),
    "a missing file": ('include = "bas.toml"\n' + TOML, 1, "", "Did you mean 'base.toml'?"),
    "a file of another kind": (
        'include = ["base.toml", "line_code.py"]\n' + TOML,
        1,
        "",
        "is not a configuration file",
    ),
    "a file that includes itself": (
        'include = "line.toml"\n' + TOML,
        1,
        "",
        "line.toml includes line.toml. Remove one of them.",
    ),
    "an include that is none": ("include = 3\n" + TOML, 1, "", "include: must be a file or a list of files"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "line_code.py").write_text(CODE)
    (tmp_path / "line_program.py").write_text(OLD_STYLE)
    (tmp_path / "base.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_with_place_and_cure(folder, capsys, name):
    text, line, key, words = BROKEN[name]
    (folder / "line.toml").write_text(text)
    assert main(["config", "check", "line.toml", "--build"]) == 2
    told = capsys.readouterr().err
    place = "line.toml" if line is None else f"line.toml:{line}"
    assert f"{place}: {key}: " in told if key else f"{place}: " in told, told
    assert words in told


def test_there_are_forty():
    assert len(BROKEN) >= 40


def test_what_is_whole_is_told_as_json_too(folder, capsys):
    (folder / "line.toml").write_text(TOML)
    assert main(["--json", "config", "check", "line.toml"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": "line.toml", "built": False}


@pytest.mark.parametrize("action", ["show", "check", "run"])
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("hparams.rate=abc", "hparams.rate: Could not cast hyperparameter 'rate' of type 'float' from value 'abc'."),
        ("hparams={rate=true}", "hparams.rate: Could not cast hyperparameter 'rate' of type 'float' from value True."),
        ("hparams.rate=[1.0]", "hparams.rate: Must not pass a list for single-valued parameter: rate"),
        ("hparams.rate=" + "[" * 3000, "hparams.rate: the value is nested too deeply."),
        ("hparams.rate=" + "-" * 100_000 + "1", "hparams.rate: the value is nested too deeply."),
        ("inputs.train.args.x=" + "[" * 200 + "]" * 200, "inputs.train.args.x: the value is nested too deeply."),
        ("hparams.rate={[]:1}", "hparams.rate: Could not cast hyperparameter"),
        ("sweep.space.hparams.rate={low=1}", "sweep.space.hparams.rate: there is no such key. Write the key in full"),
        (
            "population.values.hparams={rate=[1]}",
            "population.values.hparams: should be a valid list, given {'rate': [1]}. Write the key in full",
        ),
        ('sweep.space."hparams.rate".lo=1', "sweep.space.hparams.rate.lo: there is no such key. Did you mean 'low'?"),
        ("serving.features.x.shap=[1]", "serving.features.x.shap: there is no such key. Did you mean 'shape'?"),
    ],
    ids=lambda text: text[:20],
)
def test_settings_that_no_file_can_be_joined_with(folder, capsys, action, setting, words):
    """Otherwise `config run` would train with text in place of a number, and fail within JAX."""
    (folder / "line.toml").write_text(TOML)
    assert main(["config", action, "line.toml", "--set", setting]) == 2
    assert f"--set: {words}" in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_a_setting_becomes_what_the_file_says(folder):
    (folder / "line.toml").write_text(TOML)
    found = read_configuration(folder / "line.toml", ["hparams.rate=1", "hparams.new=abc"]).configuration.hparams
    assert found == {"rate": 1.0, "new": "abc"}
    assert type(found["rate"]) is float
    program = folder / "program.toml"
    program.write_text(PROGRAM + "[hparams]\nrate = 1\n")  # the program declares a fraction
    assert read_configuration(program, ["hparams.rate=0.5"]).program().default_hparams.rate == 0.5
    whole = read_configuration(program, ["hparams.rate=64"]).configuration.hparams["rate"]
    assert (whole, type(whole)) == (64, int)  # the program accepts a whole number too


def test_a_setting_that_nearly_has_the_name_of_a_hyperparameter_is_refused(folder, capsys):
    """Otherwise a typing error would keep the value of the file in force."""
    (folder / "line.toml").write_text(TOML)
    assert main(["run", "line.toml", "--model-dir", "run", "--set", "hparams.rte=1"]) == 2
    told = "[hparams] has no such hyperparameter. Did you mean 'rate'? If it is a new one, write it into the file."
    assert f"--set: hparams.rte: {told}" in capsys.readouterr().err
    assert not (folder / "run").exists()
    for name in ("momentum", "rate_decay", "rate2"):
        new = read_configuration(folder / "line.toml", [f"hparams.{name}=0.9"]).configuration.hparams
        assert new == {"rate": 0.3, name: 0.9}
    values = "population={seeds = 2, values = {'hparams.rates' = [0, 9]}}"
    assert read_configuration(folder / "line.toml", ["hparams.rates=1", values]).configuration.hparams["rates"] == 1
    (folder / "line.toml").write_text(TOML.replace("[hparams]\nrate = 0.3\n", ""))
    assert read_configuration(folder / "line.toml", ["hparams.rate=1"]).configuration.hparams == {"rate": 1}


@pytest.mark.parametrize("ending", ["toml", "yaml"])
def test_a_file_that_is_nested_too_deeply(folder, capsys, ending):
    text = "hparams{end} = {value}" if ending == "toml" else "hparams:\n  rate: {value}"
    for depth in (60, 3000):
        value = "[" * depth + "]" * depth
        (folder / f"deep.{ending}").write_text(text.format(end=".rate", value=value))
        assert main(["config", "check", f"deep.{ending}"]) == 2
        assert "nested too deeply" in capsys.readouterr().err


def test_a_directory_is_called_one(folder, capsys):
    (folder / "dir.toml").mkdir()
    assert main(["config", "check", "dir.toml"]) == 2
    assert "dir.toml: 'dir.toml' is a directory, not a file." in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["toml", "yaml"])
def test_a_byte_order_mark_is_no_text(folder, ending):
    text = PROGRAM if ending == "toml" else "program:\n  file: line_program.py\n"
    (folder / f"bom.{ending}").write_text(text, encoding="utf-8-sig")
    assert main(["config", "check", f"bom.{ending}"]) == 0


@pytest.mark.parametrize("text", ["{1, 2}", "1j", "b'ab'", "..."])
def test_a_setting_is_what_a_file_can_hold(folder, capsys, text):
    (folder / "line.toml").write_text(TOML)
    assert main(["config", "check", "line.toml", "--set", f"hparams.new={text}"]) == 2
    assert "hparams.new: should be a number, a string, true, false" in capsys.readouterr().err


def test_a_number_of_thousands_of_digits_in_a_setting(folder, capsys):
    (folder / "line.toml").write_text(TOML)
    assert main(["config", "check", "line.toml", "--set", f"hparams.rate={'1' * 5000}"]) == 2
    assert "hparams.rate" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["!!int x", "!!float x", "!!bool x", '!!int ""'])
def test_a_value_of_another_type_than_its_tag(tmp_path, value):
    pytest.importorskip("ruamel.yaml")
    path = tmp_path / "line.yaml"
    path.write_text(f"hparams:\n  rate: {value}\n")
    with pytest.raises(ConfigurationError, match=r"line.yaml:2: x? ?is not a value of the type"):
        read_configuration(path)


@pytest.mark.parametrize(
    "key",
    ["train.max_steps", "evaluate.steps", "evaluate.every_steps", "inputs.eval", "crossval.shuffle", "crossval.groups"],
)
def test_a_later_layer_takes_a_value_back(folder, key):
    (folder / "line.toml").write_text(
        TOML + "[evaluate]\nsteps = 2\nevery_steps = 3\n[crossval]\nshuffle = true\ngroups = 'g'\n"
    )
    part, name = key.split(".")
    assert getattr(getattr(read_configuration(folder / "line.toml").configuration, part), name) is not None
    found = read_configuration(folder / "line.toml", [f"{key}=none"]).configuration
    assert getattr(getattr(found, part), name) is None


@pytest.mark.parametrize("where", ["./", "../{0}/", ".hidden/"])
def test_a_file_may_be_named_from_a_folder_with_a_point(folder, where):
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "line_code.py").write_text(CODE)
    (folder / "line.toml").write_text(changed('"line_code.py:m', f'"{where.format(folder.name)}line_code.py:m'))
    assert main(["config", "check", "line.toml", "--build"]) == 0


def test_a_file_that_is_named_several_times_runs_once(folder, capsys):
    (folder / "line_code.py").write_text("print('RUNS')\n" + CODE)
    (folder / "line.toml").write_text(TOML)
    assert main(["config", "check", "line.toml", "--build"]) == 0
    assert capsys.readouterr().out.count("RUNS") == 1


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"]])
def test_an_experiment_fn_that_returns_nothing(folder, capsys, command):
    (folder / "line.toml").write_text(PROGRAM)
    for file in ("line_program.py", "line.toml"):
        assert main([command[0], file, *command[1:], "--model-dir", "run"]) == 2
        assert "Experiment builder did not return an Experiment instance" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_only_a_python_file_has_functions(folder, capsys, command):
    (folder / "line.toml").write_text(TOML)
    (folder / "run").mkdir()  # evaluate checks for it first
    assert main([command, "line.toml:model_fn", "--model-dir", "run"]) == 2
    assert "line.toml:model_fn names a function, but only a Python file has functions." in capsys.readouterr().err


def test_an_error_within_code_says_which_key_called_it(folder):
    (folder / "line_code.py").write_text(CODE.replace("raise ValueError", "raise KeyError"))
    code = '{ call = "line_code.py:refuses", args = { rate = 2 } }'
    (folder / "line.toml").write_text(TOML.replace("batch_size = 8 }", f"batch_size = {code} }}", 1))
    program = read_configuration(folder / "line.toml").program()
    with pytest.raises(KeyError) as caught:
        program.experiment_fn(ec.RunConfig(str(folder / "run")), ec.HParams(rate=0.1))
    place = "line.toml:6: inputs.train.args.batch_size.args"
    assert caught.value.__notes__[0].endswith(f"{place}: refuses was called with it.")


def test_an_error_of_the_house_within_code_says_which_key_called_it(folder):
    """A command prints only the message, without notes."""
    (folder / "line_code.py").write_text(CODE.replace("raise ValueError", "raise ec.errors.ExportError"))
    code = '{ call = "line_code.py:refuses", args = { rate = 2 } }'
    (folder / "line.toml").write_text(TOML.replace("batch_size = 8 }", f"batch_size = {code} }}", 1))
    program = read_configuration(folder / "line.toml").program()
    with pytest.raises(ec.errors.ExportError, match=r"line\.toml:6: .*: refuses fails: rate must be below 1"):
        program.experiment_fn(ec.RunConfig(str(folder / "run")), ec.HParams(rate=0.1))
