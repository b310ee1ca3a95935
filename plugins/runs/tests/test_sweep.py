"""Tests of sweeps: spaces, the same trials from one seed after any kill, pruning, and results."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from line_files import TOML, write_line

import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_runs import (
    ConfigurationError,
    best_trials,
    importances,
    open_search,
    read_configuration,
    run_search,
    write_winner,
)
from estimator_runs.gpu_assignment import cards_of_process, cards_of_worker
from estimator_runs.sweep.trial import run_trial
from estimator_runs.workers import Interruption, run_workers

optuna = pytest.importorskip("optuna")

EXAMPLES = Path(__file__).parents[3] / "examples"
RANGE = "{ low = 0.001, high = 0.5, log = true }"
SWEEP = f"""
[sweep]
trials = 5
seed = 3
every_steps = 10
objectives = [{{ metric = "error", mode = "min" }}]
sampler = {{ name = "TPESampler", args = {{ n_startup_trials = 2 }} }}

[sweep.space]
"hparams.rate" = {RANGE}
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_line(tmp_path, TOML + SWEEP)


def test_a_missing_optuna_blames_no_line_of_the_file(line, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["sweep", "line.toml"]) == 2
    told = capsys.readouterr().err.strip()
    assert told == 'estimator sweep: error: Sweeps need optuna: pip install "estimator-runs[sweep]".'


def told(search):
    """Returns the results of a sweep without times."""
    trials = search.shelf.study().get_trials(deepcopy=False)
    return [(one.number, one.state.name, one.values, one.params, one.intermediate_values) for one in trials]


def newest_weights(folder):
    return load_variables(folder)


def test_finds_the_best_and_writes_it_as_a_file(line, capsys):
    assert main(["sweep", "line.toml", "--set", "run_config.save_checkpoints_steps=20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["trials"] == {"COMPLETE": 5}
    rate = found["best"][0]["params"]["hparams.rate"]
    assert found["best"][0]["values"][0] == min(
        json.loads(path.read_text())["values"][0] for path in Path("runs/line-sweep/trials").glob("*/outcome.json")
    )
    assert main(["run", found["winner"], "--model-dir", "again"]) == 0
    record = json.loads(Path("again/run.json").read_text())
    assert (record["hparams"], record["run_config"]["save_checkpoints_steps"]) == ({"rate": rate}, 20)
    trial = Path(f"runs/line-sweep/trials/{found['best'][0]['number']:05d}")
    mine, its = newest_weights("again"), newest_weights(trial)
    assert {name: value.tobytes() for name, value in mine.items()} == {n: v.tobytes() for n, v in its.items()}


def test_a_second_call_trains_nothing_and_more_trials_go_on(line, monkeypatch):
    search = open_search(line)
    run_search(search)
    before = told(search)
    with monkeypatch.context() as patched:
        patched.setattr("estimator_runs.sweep.driving.run_trial", None)
        run_search(open_search(line))
    run_search(open_search(line, settings=["sweep.trials=6"]))
    assert told(search)[:5] == before
    assert len(told(search)) == 6


def test_another_search_in_the_same_directory_is_refused(line):
    open_search(line)
    with pytest.raises(ArgumentError, match="holds a sweep with another seed: seed was 3"):
        open_search(line, settings=["sweep.seed=4"])


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_trial_knows_exactly_the_trials_before_it(line, workers):
    """Workers that alternate in another order produce the same trials."""
    settings = [f"sweep.workers={workers}"]
    first, second = (open_search(line, Path(name), settings) for name in ("first", "second"))
    from estimator_runs.sweep import driving

    driving.work(first)
    backwards, nobody = driving._open_numbers, Interruption()
    while second.shelf.ended() < 5:
        for number in reversed(backwards(second)):
            driving._tried(second, number, nobody)
    assert told(first) == told(second)


def test_a_process_of_a_job_works_by_itself(line, monkeypatch, capsys):
    """It uses the cards that its launcher has assigned to it, out of those that it sees."""
    told = {"COORDINATOR_ADDRESS": "nobody:1", "NUM_PROCESSES": "2", "PROCESS_ID": "1", "LOCAL_DEVICE_IDS": "1"}
    for name, value in told.items():
        monkeypatch.setenv(f"JAX_{name}", value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert main(["sweep", "line.toml", "--set", "sweep.trials=1", "--worker"]) == 0
    assert capsys.readouterr().out.startswith("All trials of runs/line-sweep have ended.")
    assert main(["reproduce", "runs/line-sweep/trials/00000"]) == 2
    assert "This is a trial: `estimator sweep FILE --trial NUMBER` writes its file" in capsys.readouterr().err
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    assert main(["sweep", "line.toml", "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == {"COMPLETE": 1}


@pytest.mark.parametrize(
    ("cards", "workers"),
    [
        (0, [("", ""), ("", "")]),
        (1, [("0", "0.45"), ("0", "0.45")]),
        (2, [("0", "0.45"), ("1", "0.9"), ("0", "0.45")]),
        (5, [("0,1", ""), ("2,3", "")]),
    ],
)
def test_workers_of_a_machine_share_its_cards(tmp_path, cards, workers):
    for card in range(cards):
        (tmp_path / f"0000:0{card}").mkdir()
    found = [cards_of_worker(place, len(workers), {}, str(tmp_path)) for place in range(len(workers))]
    names = ("CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    assert [tuple(one.get(name, "") for name in names) for one in found] == workers


def test_what_the_environment_says_of_cards_holds(monkeypatch):
    """This holds for the cards and for their memory. The workers are processes with these variables."""
    said = {"CUDA_VISIBLE_DEVICES": "GPU-a", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.3"}
    assert cards_of_worker(1, 2, said) == {"CUDA_VISIBLE_DEVICES": "GPU-a"}
    assert cards_of_process((3,), said) == {}  # the scheduler has assigned its own cards to it
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    seen = []

    class Process:
        def __init__(self, command, *, stdin, env):
            seen.append(env["CUDA_VISIBLE_DEVICES"])
            self.stdin = None

        def poll(self):
            return 0

        wait = poll

    monkeypatch.setattr(subprocess, "Popen", Process)
    assert run_workers("none", {}, 2) == [0, 0]
    assert seen == ["4", "5"]


@pytest.mark.slow
@pytest.mark.plugins
def test_a_launcher_starts_the_workers(line):
    """The trials equal those of two workers that take turns in one process."""
    settings = ["sweep.workers=2"]
    alone = open_search(line, Path("alone"), settings)
    run_search(alone)
    words = ["sweep", "line.toml", "--dir", "launched", "--set", *settings, "--worker"]
    code = f"from estimator_core.cli import main; raise SystemExit(main({words!r}))"
    job = ["launch", "--on", "local", "--processes", "2", "--", sys.executable, "-c", code]
    assert main(job) == 0
    assert told(open_search(line, Path("launched"), settings)) == told(alone)


def test_a_trial_that_was_cut_short_goes_on_from_its_checkpoint(line, monkeypatch):
    whole = open_search(line, Path("whole"))
    run_search(whole)
    from estimator_core import Estimator

    class CutShort(Exception):
        pass

    trained = []
    train = Estimator.train

    def cut(self, *args, **kwargs):
        trained.append((Path(self.model_dir).name, kwargs["max_steps"], self.latest_checkpoint() is not None))
        result = train(self, *args, **kwargs)
        if len(trained) in (3, 7):
            raise CutShort
        return result

    monkeypatch.setattr(Estimator, "train", cut)
    for _ in range(2):
        with pytest.raises(CutShort):
            run_search(open_search(line, Path("cut")))
    run_search(open_search(line, Path("cut")))
    assert told(open_search(line, Path("cut"))) == told(whole)
    # The cut came after a complete part, which is not trained again.
    assert [one for one in trained if one[0] == "00001"] == [("00001", 10, False), ("00001", 20, True)]


@pytest.mark.parametrize("at", [pytest.param(10, marks=pytest.mark.slow), 20])
def test_a_stop_in_the_last_step_of_a_training_ends_the_sweep(line, stopped_late, at, capsys):
    """The stop arrives between the parts of a trial, or after it.

    After another start, the sweep has the same trials.
    """
    whole = open_search(line, Path("whole"), ["sweep.trials=2"])
    run_search(whole)
    words = ["sweep", "line.toml", "--dir", "late", "--set", "sweep.trials=2"]
    with stopped_late(at) as trained:
        assert main(words) == 75
    assert trained == [10, 20][: at // 10]
    assert "estimator sweep: The command was interrupted (SIGTERM). Start again to continue." in capsys.readouterr().err
    assert main(words) == 0
    assert told(open_search(line, Path("late"), ["sweep.trials=2"])) == told(whole)


def test_bad_trials_are_pruned_at_evaluations(line):
    settings = ['sweep.pruner={name="PercentilePruner", args={percentile=1.0, n_startup_trials=1}}', "sweep.trials=6"]
    search = open_search(line, settings=settings)
    run_search(search)
    found = told(search)
    assert [state for _, state, *_ in found].count("PRUNED") >= 1
    best = np.inf
    for number, state, values, _, steps in found:
        assert list(steps) == ([10] if state == "PRUNED" else [10, 20])
        assert (state == "PRUNED") == (number > 0 and steps[10] > best)
        if state == "COMPLETE":
            best = min(best, steps[10])
        assert values == [list(steps.values())[-1]]


def test_a_trial_whose_loss_is_not_finite_fails_and_the_sweep_goes_on(line):
    line.write_text(line.read_text().replace(RANGE, "{ choices = [1e30, 0.1] }"))
    search = open_search(line)
    run_search(search)
    states = {params["hparams.rate"]: state for _, state, _, params, _ in told(search)}
    assert states == {1e30: "FAIL", 0.1: "COMPLETE"}


def test_a_hook_that_restores_the_best_weights_is_refused_where_a_trial_has_parts(line, tmp_path):
    class Restores(ec.Hook):
        restore_best = True

    def program(every_steps):
        experiment = SimpleNamespace(train_steps=8, train_hooks=[Restores()], estimator=None)
        made = SimpleNamespace(
            experiment_fn=lambda config, hparams: experiment, run_config=lambda path: None, hparams=lambda text: None
        )
        folder = tmp_path / str(every_steps)
        sweep = open_search(line, folder, settings=[f"sweep.every_steps={every_steps}"]).sweep
        return run_trial(SimpleNamespace(program=lambda: made), tmp_path, sweep, lambda steps: False)

    with pytest.raises(ArgumentError, match=r"Restores has restore_best, .* Leave out one of the two"):
        program(4)
    with pytest.raises(AttributeError):  # it continued to training
        program(8)


@pytest.mark.slow
def test_several_objectives_have_a_front(line, capsys):
    settings = [
        'sweep.objectives=[{metric="error", mode="min"}, {metric="loss", mode="max"}]',
        "sweep.sampler='NSGAIISampler'",
    ]
    search = open_search(line, settings=settings)
    run_search(search)
    errors = [trial.values[0] for trial in search.shelf.study().get_trials()]
    front = best_trials(search)
    assert min(errors) in [trial.values[0] for trial in front]
    assert len(front) > 1
    words = [part for text in settings for part in ("--set", text)]
    assert main(["sweep", "line.toml", *words, "--trial", str(front[-1].number), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["number"] for one in said["best"]] == [trial.number for trial in front]
    rate = read_configuration(Path(said["winner"])).configuration.hparams["rate"]
    assert rate == front[-1].params["hparams.rate"] != front[0].params["hparams.rate"]


@pytest.mark.slow
def test_the_importance_of_a_value_that_does_nothing_is_small(line):
    settings = ["sweep.trials=12", "train.max_steps=10", "hparams.idle=0", "sweep.sampler='RandomSampler'"]
    space = "sweep.space={'hparams.rate' = {low=0.001, high=0.5}, 'hparams.idle' = {low=0, high=9}}"
    search = open_search(line, settings=[*settings, space])
    run_search(search)
    found = importances(search)
    assert list(found) == ["hparams.rate", "hparams.idle"]
    assert found["hparams.rate"] > 0.7


@pytest.mark.slow
def test_the_storage_is_optunas(line):
    search = open_search(line, settings=["sweep.storage='sqlite'", "sweep.trials=2"])
    run_search(search)
    study = optuna.load_study(study_name="sweep", storage="sqlite:///runs/line-sweep/study.db")
    assert [trial.user_attrs["model_dir"] for trial in study.trials] == ["trials/00000", "trials/00001"]
    assert write_winner(search, number=1).read_text().startswith("# Trial 1 of line-sweep.\n")


def test_one_program_serves_all_rates(line, tmp_path, caplog):
    """The step reads the rate from the optimizer's state, so that further trials compile nothing."""
    code = Path("line_code.py")  # a program that no other test has compiled
    code.write_text(code.read_text().replace("loss = jnp.mean", "loss = 7.25 * jnp.mean"))
    counts = []
    for trials in (1, 4):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="jax._src.compiler"):
            settings = [f"sweep.trials={trials}", "sweep.every_steps=20"]
            before = jax.config.jax_compilation_cache_dir
            jax.config.update("jax_compilation_cache_dir", str(tmp_path / "compiled"))
            least = jax.config.jax_persistent_cache_min_compile_time_secs
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            compilation_cache.reset_cache()
            try:
                run_search(open_search(line, settings=settings))
            finally:
                jax.config.update("jax_compilation_cache_dir", before)
                jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
                compilation_cache.reset_cache()
        counts.append([r.args[0] for r in caplog.records if "CACHE MISS" in r.getMessage()])
    first, others = counts
    assert first.count("jit__step") == 1
    assert others == []


@pytest.mark.parametrize(
    ("settings", "line_words"),
    [
        (["sweep.sampler='TPESample'"], "sweep.sampler: Optuna has no sampler 'TPESample'. Did you mean 'TPESampler'?"),
        (["sweep.sampler.args={seeds=1}"], "sweep.sampler: TPESampler refuses it"),
        (["sweep.pruner='Median'"], "sweep.pruner: Optuna has no pruner 'Median'"),
        (["sweep.space={'hparams.rat'={low=0, high=1}}"], "Did you mean 'hparams.rate'?"),
        (['sweep.space."hparams.rate".low=2'], "sweep.space.hparams.rate: "),
        (['sweep.space."hparams.rate".choices=[1]'], "write low and high, or choices"),
        (['sweep.space."hparams.idle".low=1'], "a range needs low and high"),
        (['sweep.space."hparams.idle"={}'], "write low and high, or choices"),
        (["sweep.trials=0"], "sweep.trials: "),
        (["sweep.objectives=[]"], "sweep.objectives: "),
    ],
)
def test_refusals(line, settings, line_words):
    with pytest.raises(ConfigurationError) as caught:
        open_search(line, settings=settings)
    assert line_words in str(caught.value)


COMMAND = "import sys; from estimator_core.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
def test_workers_and_driver_killed_at_random_come_to_the_same_trials(line):
    settings = ["sweep.workers=2", "sweep.trials=12"]
    whole = open_search(line, Path("whole"), settings)
    run_search(whole)
    arguments = [f"--set={text}" for text in settings]
    command = [sys.executable, "-c", COMMAND, "sweep", "line.toml", "--dir", "killed", *arguments]
    random = np.random.default_rng(5)
    for _ in range(6):
        driver = subprocess.Popen(command, start_new_session=True)
        time.sleep(float(random.uniform(4, 14)))
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert subprocess.run(command, check=False).returncode == 0
    assert told(open_search(line, Path("killed"), settings)) == told(whole)


def children_of(pid):
    """Returns the child processes of a process."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def killed_ten_times(command, folder):
    """Runs a sweep of 60 trials.

    After every five, kills all processes or one worker in turn. Returns what was killed.
    """
    random, killed = np.random.default_rng(5), []
    driver = subprocess.Popen(command, start_new_session=True)
    try:
        for target in range(5, 55, 5):
            while len(list(folder.glob("trials/*/outcome.json"))) < target:
                if driver.poll() is not None:
                    driver = subprocess.Popen(command, start_new_session=True)
                time.sleep(0.2)
            time.sleep(float(random.uniform(0, 1)))
            workers = children_of(driver.pid)
            if len(killed) % 2 and workers:
                os.kill(workers[int(random.integers(len(workers)))], signal.SIGKILL)
                killed.append("worker")
            else:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                killed.append("all")
        driver.wait()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    return killed


def steps_compiled(cache):
    """Returns the training programs in a compile cache."""
    names = {path.name for path in cache.iterdir() if path.name.startswith("jit__step-")}
    return {name.removesuffix("-cache").removesuffix("-atime") for name in names}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
@pytest.mark.parametrize("kind", ["line", pytest.param("digits", marks=[pytest.mark.plugins, pytest.mark.libraries])])
def test_sixty_trials_are_killed_ten_times(line, tmp_path, monkeypatch, kind):
    """Five kills end all processes, and five end one worker. One program is compiled for each shape."""
    settings, sizes = ["sweep.workers=2", "sweep.trials=60", "train.max_steps=10", "sweep.every_steps=5"], [8, 16]
    file = line
    if kind == "digits":
        file, sizes = EXAMPLES / "digits_sweep.toml", [32, 64, 128]  # the sizes in the file
        settings += ["run_config.default_hooks=false", "train.max_steps=20", "sweep.every_steps=10"]
    else:
        settings.append(f'sweep.space."inputs.train.args.batch_size".choices={sizes}')
    whole = open_search(file, Path("whole"), settings)
    run_search(whole)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    arguments = [f"--set={text}" for text in settings]
    command = [sys.executable, "-c", COMMAND, "sweep", str(file), "--dir", "killed", *arguments]
    killed = killed_ten_times(command, Path("killed"))
    assert (len(killed), set(killed)) == (10, {"all", "worker"})
    assert subprocess.run(command, check=False).returncode == 0
    found = told(open_search(file, Path("killed"), settings))
    assert [number for number, *_ in found] == list(range(60))
    assert found == told(whole)
    assert {params["inputs.train.args.batch_size"] for *_, params, _ in found} == set(sizes)
    assert len(steps_compiled(tmp_path / "compiled")) == len(sizes)
