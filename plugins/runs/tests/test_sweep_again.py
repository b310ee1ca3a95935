"""Tests of a sweep that is started or shown again: other configurations, other users, trainings that end early."""

import json
from pathlib import Path

import pytest
from line_files import CODE, TOML, write_line

from estimator_core import Estimator
from estimator_core.checkpoint import latest_checkpoint, load_variables
from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.summaries import read_eval_metrics
from estimator_runs import best_trials, open_search, run_search

optuna = pytest.importorskip("optuna")

SWEEP = """
[sweep]
trials = 2
every_steps = 5
objectives = [{ metric = "error", mode = "min" }]
space = { "hparams.rate" = { choices = [0.1, 0.2] } }
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_line(tmp_path, TOML + SWEEP)


@pytest.fixture
def of_another_user(monkeypatch):
    """Simulates a directory in which this process may not write, because file permissions do not restrict root."""
    opened = Path.open

    def forbidden(self, mode="r", *args, **kwargs):
        if "theirs" in self.parts and mode != "r":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", lambda self, text, **how: self.open("w", **how).write(text))
    monkeypatch.setattr(Path, "open", forbidden)


def test_trials_of_another_configuration_are_refused(line, capsys):
    """Trials of two plans cannot be compared, and the winner would be a run that never happened."""
    words = ["sweep", "line.toml", "--dir", "here"]
    assert main([*words, "--set", "sweep.trials=1"]) == 0
    best = Path("here/best.toml").read_text()
    capsys.readouterr()
    for action in ([], ["--show"], ["--worker"]):
        assert main([*words, "--set", "train.max_steps=10", *action]) == 2
        told = "here holds a sweep with another train.max_steps: train.max_steps was 20. Give another directory (--dir)"
        assert told in capsys.readouterr().err
    assert Path("here/best.toml").read_text() == best
    line.write_text(line.read_text() + "[crossval]\nfolds = 3\n")  # trials do not use it
    assert main([*words, "--set", "sweep.trials=2"]) == 0


def test_a_changed_secret_is_another_configuration_and_is_not_told(line):
    open_search(line, settings=["hparams.api_key='abc-1'"])
    with pytest.raises(ArgumentError, match="another configuration: configuration was 'with another secret'") as told:
        open_search(line, settings=["hparams.api_key='abc-2'"])
    assert "abc" not in str(told.value) + Path("runs/line-sweep/sweep.json").read_text()


def test_a_directory_of_an_earlier_version_stays_known(line):
    place = open_search(line).shelf.folder / "sweep.json"
    said = json.loads(place.read_text())
    place.write_text(json.dumps({key: value for key, value in said.items() if "configuration" not in key}))
    open_search(line, settings=["train.max_steps=10"])


def test_who_only_looks_makes_nothing(line, capsys):
    for action in (["--show"], ["--trial", "0"]):
        assert main(["sweep", "line.toml", "--dir", "elsewhere", *action]) == 2
        assert "elsewhere holds no sweep that has begun. Give its directory (--dir)." in capsys.readouterr().err
    assert not Path("elsewhere").exists()


def test_the_sweep_of_another_user_can_be_looked_at(line, capsys, request):
    run_search(open_search(line, Path("theirs")))
    request.getfixturevalue("of_another_user")
    capsys.readouterr()
    words = ["sweep", "line.toml", "--dir", "theirs"]
    assert main([*words, "--show", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["trials"], found["best"][0]["params"], found["winner"]) == (
        {"COMPLETE": 2},
        {"hparams.rate": 0.2},
        None,
    )
    assert "theirs/best.toml cannot be written: Permission denied." in err
    assert main([*words, "--trial", "0"]) == 2
    assert "error: theirs/best.toml cannot be written: Permission denied." in capsys.readouterr().err
    assert main([*words, "--set", "sweep.trials=3"]) == 2
    assert "theirs/sweep.lock cannot be written: Permission denied. Give another directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-15], lambda data: data[:-1], lambda data: b"\0" + data],
    ids=["within a line", "before a line feed", "a first byte"],
)
def test_a_torn_journal_is_written_anew_from_the_trials(line, damage, caplog):
    search = open_search(line)
    run_search(search)
    journal = search.shelf.folder / "study.journal"
    whole = [(one.params, one.values) for one in search.shelf.study().trials]
    torn = damage(journal.read_bytes())
    journal.write_bytes(torn)
    run_search(open_search(line, settings=["sweep.trials=3"]))
    backend = optuna.storages.journal.JournalFileBackend(str(journal))
    study = optuna.load_study(study_name="sweep", storage=optuna.storages.JournalStorage(backend))
    assert [(one.params, one.values) for one in study.trials][:2] == whole
    assert len(study.trials) == 3
    assert journal.with_name("study.journal.torn").read_bytes() == torn
    assert "study.journal is damaged. It was renamed to study.journal.torn and is rebuilt" in caplog.text


@pytest.mark.timeout(120)
@pytest.mark.parametrize("earlier", [False, True], ids=["", "of an earlier version"])
def test_the_lock_of_a_process_that_was_killed_expires(line, monkeypatch, earlier):
    """A sweep with a relative directory waited for it forever."""

    class Killed(BaseException):
        pass

    def killed(self):
        raise Killed

    lock = optuna.storages.journal.JournalFileSymlinkLock
    with monkeypatch.context() as patched:
        patched.setattr(lock, "release", killed)
        with pytest.raises(Killed):
            run_search(open_search(line, Path("relative")))
    place = Path("relative/study.journal.lock")
    assert place.exists()  # the link leads somewhere, so its age is known
    if earlier:
        place.unlink()
        place.symlink_to("relative/study.journal")
    monkeypatch.setattr(lock.__init__, "__defaults__", (3,))
    search = open_search(line, Path("relative"))
    run_search(search)
    assert len(search.shelf.study().trials) == 2


def test_a_look_at_a_sweep_writes_nothing(line):
    search = open_search(line)
    run_search(search)
    journal = search.shelf.folder / "study.journal"
    before = journal.read_bytes()
    assert len(search.shelf.study().trials) == 2
    assert journal.read_bytes() == before


@pytest.mark.parametrize(("rows", "steps"), [(96, [5, 10, 12]), (80, [5, 10])])
def test_a_trial_ends_with_its_input(line, rows, steps, monkeypatch):
    """As in `estimator run`, the input does not start again for the next part, nor after a kill."""
    code = Path("line_code.py")
    code.write_text(f"{code.read_text().replace('-1, 1, 32', f'-1, 1, {rows}')}")
    line.write_text(line.read_text().replace("args = { batch_size = 8 }", "args = { batch_size = 8, epochs = 1 }"))
    settings = ["sweep.trials=1"]
    search = open_search(line, settings=settings)
    evaluate = Estimator.evaluate

    def killed(self, *args, **kwargs):
        if latest_checkpoint(self.model_dir).endswith(f"/{rows // 8}"):
            raise RuntimeError("killed")
        return evaluate(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Estimator, "evaluate", killed)
        with pytest.raises(RuntimeError, match="killed"):
            run_search(search)
    run_search(open_search(line, settings=settings))
    trial = search.shelf.trial_dir(0)
    assert sorted(search.shelf.outcome(0).steps) == sorted(read_eval_metrics(trial / "eval")) == steps
    assert main(["sweep", "line.toml", "--set", *settings]) == 0
    assert main(["run", "runs/line-sweep/best.toml", "--model-dir", "again"]) == 0
    assert load_variables("again")["slope"].tobytes() == load_variables(trial)["slope"].tobytes()


def test_a_training_input_without_batches_is_an_error_of_one_line(line, capsys):
    code = Path("line_code.py")
    code.write_text(code.read_text() + "\n\ndef nothing(batch_size):\n    return lambda: iter(())\n")
    train = 'call = "line_code.py:{}"\nargs'
    line.write_text(line.read_text().replace(train.format("batches"), train.format("nothing")))
    assert main(["sweep", "line.toml"]) == 1
    assert "Could not find trained model in model_dir: runs/line-sweep/trials/00000." in capsys.readouterr().err


@pytest.mark.parametrize("code", ["other_code.py", "my code/other_code.py"])
def test_the_winner_has_the_settings_of_its_trial(line, monkeypatch, code):
    """Paths start from the directory of the command, and values have the types of the file."""
    Path(code).parent.mkdir(exist_ok=True)
    Path(code).write_text(Path("line_code.py").read_text().replace("3 * x + 1", "5 * x"))
    line.write_text(line.read_text().replace("rate = 0.3\n", 'rate = 0.3\nscale = 2.0\nnote = ""\n'))
    settings = ["sweep.trials=1", "hparams.scale=1", "hparams.note=${here} is a text"]
    settings += [f"inputs.{name}.call={code}:batches" for name in ("train", "eval")]
    words = ["sweep", "line.toml", "--dir", "deep/down/sweep"]
    assert main([*words, *(part for text in settings for part in ("--set", text))]) == 0
    monkeypatch.chdir(Path("deep"))
    assert main(["run", "down/sweep/best.toml", "--model-dir", "again"]) == 0
    again, trial = Path("again"), Path("down/sweep/trials/00000")
    assert load_variables(again)["slope"].tobytes() == load_variables(trial)["slope"].tobytes()
    told = [json.loads((place / "run.json").read_text())["hparams"] for place in (again, trial)]
    assert [(repr(one["scale"]), one["note"]) for one in told] == [("1.0", "${here} is a text")] * 2


def test_where_all_trials_have_failed_a_reason_is_told(line, capsys):
    line.write_text(line.read_text().replace("[0.1, 0.2]", "[1e30]"))
    assert main(["sweep", "line.toml"]) == 2
    told = "No trial of runs/line-sweep is complete: 2 of the 2 that have ended have failed. Trial 1: NaN loss"
    assert told in capsys.readouterr().err
    with pytest.raises(ArgumentError, match="there is no best one yet"):
        best_trials(open_search(line, Path("new")))


@pytest.mark.slow
def test_an_error_within_a_trial_names_the_trial_and_its_values(line):
    code = Path("line_code.py")
    code.write_text(code.read_text().replace("    loss = ", "    assert params.rate < 0\n    loss = ", 1))
    search = open_search(Path("line.toml"), Path("sweep"))
    with pytest.raises(AssertionError) as caught:
        run_search(search)
    assert "in trial 0 of sweep: {'hparams.rate': " in caught.value.__notes__[-1]


def test_a_line_of_the_command_names_the_trial_and_its_values(line, capsys):
    """The command once printed the line without the note."""
    code = Path("line_code.py")
    words = "    raise ec.errors.ModelFnError('the rate is bad')\n"
    code.write_text(code.read_text().replace("    loss = ", f"{words}    loss = ", 1))
    assert main(["sweep", "line.toml", "--dir", "sweep"]) == 1
    error = capsys.readouterr().err
    assert "error: trial 0 of sweep, {'hparams.rate': 0." in error
    assert "}: the rate is bad [ModelFnError]" in error


def test_a_sweep_continues_without_a_trial_that_always_ends_in_an_error(line, capsys, caplog):
    code = Path("line_code.py")
    sound = code.read_text()
    run_search(open_search(line, settings=["sweep.trials=1"]))
    first = Path("runs/line-sweep/trials/00000/outcome.json").read_text()
    words = "    raise ec.errors.ModelFnError('it never works')\n"
    code.write_text(sound.replace("    loss = ", f"{words}    loss = ", 1))
    for _ in range(2):
        assert main(["sweep", "line.toml", "--set", "sweep.trials=3"]) == 1
        assert "trial 1 of runs/line-sweep" in capsys.readouterr().err
    assert "`estimator sweep` with --give-up 1 marks it as failed" in caplog.text
    assert main(["sweep", "line.toml", "--give-up", "1"]) == 0
    assert "Trial 1 of runs/line-sweep counts as failed." in capsys.readouterr().out
    for number, told in ((0, "has ended: COMPLETE"), (1, "has ended: FAIL"), (2, "no trial 2"), (-1, "no trial -1")):
        assert main(["sweep", "line.toml", "--give-up", str(number)]) == 2
        assert told in capsys.readouterr().err
    code.write_text(sound)
    assert main(["sweep", "line.toml", "--set", "sweep.trials=3"]) == 0
    search = open_search(line, settings=["sweep.trials=3"])
    assert [one.state.name for one in search.shelf.study().trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert Path("runs/line-sweep/trials/00000/outcome.json").read_text() == first


@pytest.mark.slow
def test_an_error_of_a_worker_is_one_line(line, capfd):
    settings = ["sweep.workers=2", "sweep.objectives=[{metric='errors', mode='min'}]"]
    assert main(["sweep", "line.toml", *(part for text in settings for part in ("--set", text))]) == 2
    err = capfd.readouterr().err
    assert "}: The evaluation has no metric 'errors'" in err
    assert "Traceback" not in err
    assert "2 of 2 workers failed (exit codes [1, 1]): see their messages above." in err


STOPPED = """

HPARAMS = ec.HParams(rate=0.3)


class Stops(ec.Hook):
    def next_step(self, step):
        return step + 1

    def after_step(self, run, step, out):
        if step == 7:
            run.request_stop("enough")


def experiment_fn(config, hparams):
    estimator = ec.Estimator(model_fn, config=config, params=hparams)
    return ec.Experiment(estimator, batches(8), batches(8, 1), train_steps=20, train_hooks=[Stops()])
"""


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_trial_that_a_hook_has_stopped_is_not_trained_further_after_a_kill(line, monkeypatch, evaluated):
    Path("line_code.py").write_text(CODE + STOPPED)
    line.write_text(f'program = {{ file = "line_code.py" }}\nhparams.rate = 0.3\n{SWEEP}')
    search = open_search(line, settings=["sweep.trials=1"])
    evaluate = Estimator.evaluate

    def killed(self, *args, **kwargs):
        at_the_end = self.latest_checkpoint().endswith("7")
        found = None if at_the_end and not evaluated else evaluate(self, *args, **kwargs)
        if at_the_end:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Estimator, "evaluate", killed)
        with pytest.raises(KeyboardInterrupt):
            run_search(search)
    run_search(search)
    (trial,) = search.shelf.study().trials
    assert sorted(trial.intermediate_values) == [5, 7]
    assert latest_checkpoint(search.shelf.trial_dir(0)).endswith("7")
