"""Tests that Optuna's samplers and pruners with state in the study work in a sweep as in a loop of Optuna."""

import contextlib
import importlib.util
import json
from pathlib import Path

import pytest
from line_files import TOML, write_line

from estimator_runs import ConfigurationError, open_search, run_search
from estimator_runs.sweep import driving
from estimator_runs.sweep.directory import Outcome
from estimator_runs.sweep.driving import planned

optuna = pytest.importorskip("optuna")
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

POINTS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3]
SWEEP = """
[sweep]
trials = 6
seed = 3
every_steps = 2
objectives = [{ metric = "error", mode = "min" }]
space = { "hparams.rate" = { low = 0.0, high = 0.5 } }
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_line(tmp_path, TOML + SWEEP)


def sampled(line, sampler, trials, workers=1, folder="here", backwards=False, failed=()):
    """Returns the plans of a sweep without training. The objective of each is its distance from 0.2.

    Args:
        line: the path of the file.
        sampler: the sampler, as TOML.
        trials: the number of trials.
        workers: the value of `workers` in the file.
        folder: the directory of the sweep.
        backwards: whether trials that can run at the same time run in reverse order.
        failed: the numbers of trials that fail.
    """
    search = open_search(line, Path(folder), [f"sweep.sampler={sampler}", f"sweep.workers={workers}"])
    shelf = search.shelf
    while (first := shelf.ended()) < trials:
        ready = range(first, min(first + workers, trials))
        for number in reversed(ready) if backwards else ready:
            if shelf.outcome(number) is None:
                rate = planned(search, number).params["hparams.rate"]
                good = Outcome(state="COMPLETE", values=[abs(rate - 0.2)])
                shelf.end(number, Outcome(state="FAIL", reason="as said") if number in failed else good)
    return [shelf.plan(number) for number in range(trials)]


def rates(plans):
    return [plan.params["hparams.rate"] for plan in plans]


GRID = f'{{name="GridSampler", args={{search_space={{"hparams.rate"={POINTS}}}}}}}'
GENETIC = '{name="NSGAIISampler", args={population_size=4}}'


@pytest.mark.parametrize("workers", [1, 3])
def test_a_grid_visits_each_point_once(line, workers):
    found = rates(sampled(line, GRID, 6, workers))
    assert sorted(found) == POINTS
    assert found != POINTS


@pytest.mark.parametrize("workers", [1, 3])
def test_a_sequence_continues_from_trial_to_trial(line, workers):
    """The points follow Sobol's sequence after a first random trial, as in Optuna."""
    study = optuna.create_study(sampler=optuna.samplers.QMCSampler(seed=1))
    space = {"hparams.rate": optuna.distributions.FloatDistribution(0.0, 0.5)}
    for _ in range(8):
        trial = study.ask(space)
        study.tell(trial, 0.0)
    expected = [trial.params["hparams.rate"] for trial in study.get_trials()]
    found = rates(sampled(line, "QMCSampler", 8, workers))
    assert found[1:] == expected[1:]
    assert len(set(found)) == 8


def test_a_sequence_whose_first_trials_fail_tries_other_points(line):
    assert len(set(rates(sampled(line, "QMCSampler", 4, failed=range(3))))) == 4


def test_generations_follow_each_other(line):
    plans = sampled(line, GENETIC, 16)
    assert [plan.attributes["NSGAIISampler:generation"] for plan in plans] == [n // 4 for n in range(16)]
    parents = plans[-1].study["NSGAIISampler:parent:3"]
    assert set(parents) <= set(range(12))
    assert max(abs(rate - 0.2) for rate in rates([plans[one] for one in parents])) < 0.1


@pytest.mark.parametrize("sampler", [GRID, "QMCSampler", GENETIC, "BruteForceSampler", "TPESampler"])
def test_the_order_of_workers_says_nothing(line, sampler):
    if sampler == "BruteForceSampler":
        line.write_text(line.read_text().replace("high = 0.5", "high = 0.5, step = 0.05"))
    forwards, backwards = (sampled(line, sampler, 9, 3, name, backwards=name == "back") for name in ("forth", "back"))
    assert forwards == backwards
    if sampler == "BruteForceSampler":
        assert len(set(rates(forwards))) == 9


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("SuccessiveHalvingPruner", {"min_resource": 2, "reduction_factor": 2}),
        ("HyperbandPruner", {"min_resource": 2, "max_resource": 8, "reduction_factor": 2}),
    ],
)
def test_pruners_that_compare_rungs_end_the_bad_trials(line, name, args, monkeypatch):
    """The trials end as in a loop of Optuna with the same values. A killed trial ends as it would have ended."""
    curves = {number: {step: abs(number - 5) / step for step in (2, 4, 6, 8)} for number in range(10)}
    study = optuna.create_study(study_name="sweep", pruner=getattr(optuna.pruners, name)(**args))
    expected = []
    for number, curve in curves.items():
        trial = study.ask()
        assert trial.number == number
        for step, value in curve.items():
            trial.report(value, step)
            if step < 8 and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, curve[8])
        expected.append((study.trials[-1].state.name, sorted(study.trials[-1].intermediate_values)))

    killed = []

    def trained(read, model_dir, sweep, is_pruned):
        steps = {}
        for step, value in curves[int(model_dir.name)].items():
            steps[step] = value
            if step < 8 and is_pruned(dict(steps)):
                return Outcome(state="PRUNED", values=[value], steps=steps)
            if model_dir.name not in killed and step == 4:
                killed.append(model_dir.name)
                raise InterruptedError
        return Outcome(state="COMPLETE", values=[value], steps=steps)

    monkeypatch.setattr(driving, "run_trial", trained)
    said = "{" + ", ".join(f"{key}={value}" for key, value in args.items()) + "}"
    search = open_search(line, settings=[f"sweep.pruner.name='{name}'", f"sweep.pruner.args={said}", "sweep.trials=10"])
    for _ in range(11):
        with contextlib.suppress(InterruptedError):
            run_search(search)
    found = [search.shelf.outcome(number) for number in range(10)]
    assert [(one.state, sorted(one.steps)) for one in found] == expected
    assert "PRUNED" in [one.state for one in found]
    assert killed


@pytest.mark.parametrize(
    ("sampler", "told"),
    [
        (
            "'CmaEsSampler'",
            "CmaEsSampler keeps its state as a pickle, but a sweep neither writes nor reads pickles. TPESampler",
        ),
        ("'GPSampler'", "GPSampler needs torch: pip install torch."),
        ("'BruteForceSampler'", "BruteForceSampler does not fit the space: FloatDistribution.step must be given"),
        (GRID.replace("rate", "rat"), "search_space has 'hparams.rat', but the space does not. Did you mean"),
        ("{name='GridSampler', args={search_space={}}}", "GridSampler does not fit the space: "),
        (GRID.replace("0.05", "0.7"), "GridSampler does not fit the space: The value 0.7 of parameter 'hparams.rate'"),
        ("{name='GridSampler', args={search_space=3}}", "GridSampler refuses it: "),
    ],
)
def test_samplers_that_cannot_work_are_refused(line, sampler, told, monkeypatch):
    """They are refused before anything is written, and the message says what to do."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(ConfigurationError, match=r"sweep\.sampler: ") as caught:
        open_search(line, settings=[f"sweep.sampler={sampler}"])
    assert told in str(caught.value)
    assert not Path("runs").exists()


def test_a_sweep_of_a_sampler_that_is_refused_now_can_be_looked_at(line):
    open_search(line, Path("old"))
    said = json.loads(Path("old/sweep.json").read_text())
    setting = "sweep.sampler='CmaEsSampler'"
    assert said["sampler"]["name"] == "TPESampler"
    said["sampler"] = {"name": "CmaEsSampler", "args": {}}
    Path("old/sweep.json").write_text(json.dumps(said))
    assert open_search(line, Path("old"), settings=[setting], look=True).shelf.ended() == 0
    with pytest.raises(ConfigurationError, match="keeps its state as a pickle"):
        open_search(line, Path("old"), settings=[setting])


@pytest.mark.parametrize("name", ["RandomSampler", "TPESampler"])
def test_a_seed_of_the_sampler_is_that_of_all_trials_and_not_of_each(line, name):
    first, again, other = (
        rates(sampled(line, f"{{name='{name}', args={{seed={seed}}}}}", 4, folder=folder))
        for seed, folder in ((5, "first"), (5, "again"), (6, "other"))
    )
    assert first == again != other
    assert len(set(first)) == 4
