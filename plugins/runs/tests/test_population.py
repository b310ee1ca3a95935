"""Tests of runs that are trained together: each equals the run alone, resumed or refused."""

import json
import os
import signal
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from line_files import CODE, TOML

import estimator_core as ec
from estimator_core.checkpoint import latest_checkpoint, read_checkpoint
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, PreemptedError
from estimator_core.hooks import Hook
from estimator_core.summaries import read_eval_metrics
from estimator_runs import Member, Population, open_folds, open_population
from estimator_runs.population import training
from estimator_runs.population.choosing import fastest
from estimator_runs.workers import run_workers

RATES = (0.01, 0.02, 0.03)
X = np.random.default_rng(0).normal(size=(36, 6)).astype(np.float32)
Y = X.sum(axis=1)
KEYS = (jax.random.key(0), jax.random.key(1))


def model_fn(features, labels, mode, params):
    """A layer with dropout, whose rate is in the state of Adam."""
    hidden = jnp.tanh(features["x"] @ ec.get_variable("in", (6, 8)))
    seen = ec.get_variable("seen", (), initializer=jax.nn.initializers.zeros, trainable=False)
    if mode == ec.ModeKeys.TRAIN:
        keep = jax.random.bernoulli(ec.next_rng_key("dropout"), 0.8, hidden.shape)
        hidden = jnp.where(keep, hidden / 0.8, 0)
        ec.set_variable("seen", seen + labels.shape[0])
    y = hidden @ ec.get_variable("out", (8,))
    loss = jnp.mean((y - labels) ** 2)
    train_op = optax.inject_hyperparams(optax.adam)(learning_rate=params["rate"])
    return ec.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=train_op)


def inputs(seed, epochs=None, rows=36):
    """Returns an input in batches of 8 that the seed shuffles. With 36 rows, every fifth batch has 4 rows."""
    return ec.inputs.numpy_input_fn({"x": X[:rows]}, Y[:rows], batch_size=8, num_epochs=epochs, shuffle=True, seed=seed)


def member(folder, number, *, model=model_fn, rate=None, input_fn=None, hooks=(), **config):
    settings = {"save_checkpoints_steps": 25, "default_hooks": False, "save_summary_steps": 10, **config}
    estimator = ec.Estimator(
        model,
        config=ec.RunConfig(str(folder / str(number)), tf_random_seed=number, **settings),
        params={"rate": RATES[number % 3] if rate is None else rate},
    )
    return Member(name=f"run {number}", estimator=estimator, input_fn=input_fn or inputs(number), hooks=hooks)


def alone(folder, number, steps, **how):
    one = member(folder, number, **how)
    return one.estimator.train(one.input_fn, max_steps=steps)


def assert_same(one, other):
    """Checks variables, slots and clock of the newest checkpoints, and the position of the input."""
    found, expected = (read_checkpoint(latest_checkpoint(each.model_dir)) for each in (one, other))
    assert found.clock.tolist() == expected.clock.tolist()
    assert found.input == expected.input
    for item in ("variables", "model_state", "opt_state"):
        mine, its = getattr(found, item), getattr(expected, item)
        assert sorted(mine) == sorted(its)
        for name, value in its.items():
            np.testing.assert_allclose(mine[name], value, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("way", ["together", pytest.param("together in fours", marks=pytest.mark.slow), "apart"])
def test_each_run_is_what_it_is_alone(tmp_path, way):
    members = [member(tmp_path / "together", number) for number in range(3)]
    population = Population(members, way=way)
    population.train(30)
    for number, one in enumerate(members):
        single = alone(tmp_path / "alone", number, 30)
        assert_same(one.estimator, single)
        fresh = member(tmp_path / "together", number)
        fresh.estimator.train(fresh.input_fn, max_steps=40)  # opened and continued by its model_dir alone
        assert_same(fresh.estimator, single.train(inputs(number), max_steps=40))


def test_killed_between_two_checkpoints_it_goes_on(tmp_path, monkeypatch):
    saves, save = [], training.save

    def killed(one):
        if len(saves) == 4:
            raise KeyboardInterrupt
        saves.append((one.member.name, one.step))
        save(one)

    monkeypatch.setattr(training, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        Population([member(tmp_path / "cut", number) for number in range(3)], way="together").train(60)
    assert saves[3] == ("run 0", 50)
    monkeypatch.setattr(training, "save", save)
    members = [member(tmp_path / "cut", number) for number in range(3)]
    resumed = Population(members, way="together")
    assert [resumed.step(one.name) for one in members] == [50, 25, 25]
    resumed.train(60)
    for number, one in enumerate(members):
        assert_same(one.estimator, alone(tmp_path / "alone", number, 60))


@pytest.mark.slow
def test_inputs_end_apart(tmp_path):
    """One input has five batches, the last of four rows, and the other input has four."""
    rows = [36, 32]
    members = [member(tmp_path / "both", n, input_fn=inputs(n, epochs=1, rows=rows[n])) for n in range(2)]
    population = Population(members)
    population.train(30)
    assert [population.step(one.name) for one in members] == [5, 4]
    for number, one in enumerate(members):
        single = alone(tmp_path / "alone", number, 30, input_fn=inputs(number, epochs=1, rows=rows[number]))
        assert_same(one.estimator, single)


@pytest.mark.parametrize("stop", [4, 5], ids=["at the last batch of one", "after its end"])
def test_an_input_that_has_ended_stays_so_after_a_kill(tmp_path, stop):
    """The second process does not start the input again, as a call of `Estimator.train` would do."""
    rows = [36, 32]  # five batches and four

    def population():
        return Population([member(tmp_path, n, input_fn=inputs(n, epochs=1, rows=rows[n])) for n in range(2)])

    population().train(stop)
    resumed = population()
    resumed.train(30)
    assert [resumed.step(f"run {number}") for number in range(2)] == [5, 4]


def test_a_run_whose_loss_is_not_finite_leaves_the_others(tmp_path):
    members = [member(tmp_path / "both", number, rate=rate) for number, rate in ((0, 0.01), (1, 1e30))]
    population = Population(members)
    population.train(30)
    assert population.way in ("together", "together in fours", "apart")  # the way was measured
    assert list(population.failed) == ["run 1"]
    assert population.step("run 1") == 0
    assert_same(members[0].estimator, alone(tmp_path / "alone", 0, 30, rate=0.01))


def prints(features, labels, mode, params):
    jax.debug.callback(lambda loss: None, jnp.mean(labels))
    return model_fn(features, labels, mode, params)


def constant(features, labels, mode, params):
    return model_fn(features, labels, mode, params)._replace(train_op=optax.sgd(params["rate"]))


def hooked(features, labels, mode, params):
    return model_fn(features, labels, mode, params)._replace(training_hooks=[Hook()])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"hooks": [Hook()]}, "run 1 cannot .*: the hook Hook sees the steps of one run"),
        ({"model": hooked}, "run 0 cannot .*: the hook Hook of its EstimatorSpec"),
        ({"model": prints}, "run 0 cannot .*: its step calls the host .*callback"),
        ({"model": constant}, "run 1 cannot .* run 0: their programs differ, first in .*inject_hyperparams"),
        ({"input_fn": ec.inputs.numpy_input_fn({"x": X}, Y, batch_size=4, shuffle=False)}, "run 1 cannot .*shapes"),
        ({"save_checkpoints_steps": None, "save_checkpoints_secs": None}, "run 1 cannot .*saves no checkpoints"),
        ({"mesh": {"data": 1}}, "run 1 cannot .*its mesh"),
        ({"steps_per_dispatch": "auto"}, "run 1 cannot .*measures one run"),
        ({"components": {"nan_tensor": None}}, "run 1 cannot .*not finite.*nan_tensor"),
        ({"debug": True}, "run 1 cannot .*without compilation"),
    ],
    ids=["hook", "spec-hook", "callback", "constant", "shapes", "checkpoints", "mesh", "auto", "nan", "debug"],
)
def test_what_cannot_be_trained_together_is_named(tmp_path, how, words):
    with pytest.raises(ArgumentError, match=words):
        Population(
            [member(tmp_path, 0, **({"model": how["model"]} if "model" in how else {})), member(tmp_path, 1, **how)]
        ).train(5)


def test_two_runs_of_one_directory_are_refused(tmp_path):
    one = member(tmp_path, 0)
    with pytest.raises(ArgumentError, match="its own model_dir"):
        Population([one, Member(name="another", estimator=one.estimator, input_fn=one.input_fn)])


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("line_code.py").write_text(CODE)
    Path("line.toml").write_text(TOML + "\n[population]\nseeds = 2\nevery_steps = 10\n")
    return Path("line.toml")


VALUES = ["--set", 'population.values={"hparams.rate"=[0.1, 0.3]}']


@pytest.mark.slow
def test_the_command_trains_every_seed_with_all_values(line, capsys):
    assert main(["population", "line.toml", "--json", *VALUES]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    values = [(one["values"]["run_config.tf_random_seed"], one["values"]["hparams.rate"]) for one in said["trials"]]
    assert values == [(0, 0.1), (1, 0.1), (0, 0.3), (1, 0.3)]
    assert main(["run", "line.toml", "--model-dir", "alone", "--set", "hparams.rate=0.1"]) == 0
    expected = read_eval_metrics(Path("alone/eval"))[20]["error"]
    assert said["trials"][0]["metrics"]["error"] == pytest.approx(expected, rel=1e-6)
    assert sorted(read_eval_metrics(Path("runs/line-population/trials/00003/eval"))) == [10, 20]
    capsys.readouterr()
    assert main(["population", "line.toml", *VALUES]) == 0  # all is done already
    assert "hparams.rate 0.3  error" in capsys.readouterr().out
    assert main(["runs", "list", "runs/line-population"]) == 0
    assert main(["reproduce", "runs/line-population/trials/00000"]) == 2
    assert "estimator sweep" not in capsys.readouterr().err
    with pytest.raises(ArgumentError, match="another configuration"):
        open_population(line)


def test_a_trial_that_fails_is_told(line, capsys):
    line.write_text(line.read_text().replace("seeds = 2", 'seeds = [3]\nvalues = { "hparams.rate" = [0.1, 1e30] }'))
    assert main(["population", "line.toml"]) == 1
    assert "trial 1 failed: the loss is not finite at step" in capsys.readouterr().out


def test_two_seeds_that_fail_have_no_deviation(line, capsys):
    """NumPy once printed a warning in the middle of the table."""
    text = (
        line.read_text()
        .replace("[hparams]\nrate = 0.3", "[hparams]\nrate = 1e10")
        .replace("every_steps = 10", "every_steps = 1")
    )
    line.write_text(text.replace("seeds = 2", "seeds = [3, 4]"))
    assert main(["population", "line.toml"]) == 1
    assert "trial 1 failed: the loss is not finite at step" in capsys.readouterr().out


def with_table(inner):
    """Returns a model that adds a table of numbers within its own program, or draws from a key that it holds."""

    def table_model(features, labels, mode, params):
        spec = model_fn(features, labels, mode, {"rate": 0.01})
        more = jax.jit(lambda value: value * jnp.mean(inner(params["rate"])))
        return spec._replace(loss=more(spec.loss))

    return table_model


@pytest.mark.parametrize(
    "inner",
    [
        lambda seed: np.random.default_rng(seed).random(8).astype(np.float32),
        lambda seed: jnp.asarray(np.random.default_rng(seed).random(8).astype(np.float32)),
        lambda seed: jax.random.uniform(KEYS[seed], (8,)),
    ],
    ids=["numpy", "jax", "key"],
)
def test_constants_of_inner_programs_are_compared(tmp_path, inner):
    with pytest.raises(ArgumentError, match=r"run 1 cannot .* run 0: their programs differ"):
        Population([member(tmp_path, n, model=with_table(inner), rate=n) for n in range(2)], way="apart").train(2)


def test_runs_with_the_same_key_are_trained(tmp_path):
    model = with_table(lambda _: jax.random.uniform(KEYS[0], (8,)))
    population = Population([member(tmp_path, n, model=model, rate=0) for n in range(2)], way="together")
    population.train(2)
    assert population.step("run 1") == 2


def test_a_run_that_catches_up_is_compared_with_the_others_first(tmp_path):
    alone(tmp_path, 0, 5, model=constant)
    runs = [member(tmp_path, number, model=constant) for number in range(2)]
    with pytest.raises(ArgumentError, match=r"run 0 cannot .* run 1: their programs differ"):
        Population(runs, way="together").train(10)
    assert read_checkpoint(latest_checkpoint(runs[1].estimator.model_dir)).clock[0] == 0


def test_a_failed_run_stays_where_it_was(tmp_path):
    """The loss is not finite at one step only. Later calls do not continue the training of the run."""

    def broken():
        for step in range(40):
            yield {"x": X[:8] * (np.nan if step == 4 else 1)}, Y[:8]

    members = [member(tmp_path, 0, input_fn=broken), member(tmp_path, 1)]
    population = Population(members, way="together")
    for step in (3, 6, 12):
        population.train(step)
    assert population.failed == {"run 0": 5}
    assert (population.step("run 0"), population.step("run 1")) == (3, 12)
    found = read_checkpoint(latest_checkpoint(members[0].estimator.model_dir))
    assert (found.clock[0], found.input["batches"]) == (3, 3)
    assert population._standing["run 0"].position.batches == 3


def test_two_runs_of_one_name_are_refused(tmp_path):
    runs = [member(tmp_path, number) for number in range(2)]
    same = Member(name="run 0", estimator=runs[1].estimator, input_fn=runs[1].input_fn)
    with pytest.raises(ArgumentError, match="its own name"):
        Population([runs[0], same])


class Ramp(Hook):
    """A hook of a plugin that sees every step."""


def test_hooks_that_plugins_add_are_refused(tmp_path):
    module = types.ModuleType("acme_hooks")
    module.ESTIMATOR_PLUGIN_API = (1, 3)
    module.estimator_capabilities = lambda: ["adds_hooks"]
    module.estimator_run_hooks = lambda run: [Ramp()]
    estimators = [
        ec.Estimator(
            model_fn,
            config=ec.RunConfig(str(tmp_path / str(said)), default_hooks=said),
            params={"rate": 0.1},
            plugins=ec.Plugins(extra=[module]),
        )
        for said in (True, False)
    ]
    with pytest.raises(ArgumentError, match=r"seen cannot .*the hook Ramp of an installed plugin"):
        Population([Member(name="seen", estimator=estimators[0], input_fn=inputs(0))])
    Population([Member(name="left out", estimator=estimators[1], input_fn=inputs(0))])


def test_a_trial_whose_input_ends_is_evaluated_there_and_not_trained_on(line, capsys):
    line.write_text(line.read_text().replace("batch_size = 8 }", "batch_size = 8, epochs = 3 }"))
    folder = Path("runs/line-population/trials/00001")
    for _ in range(2):
        assert main(["population", "line.toml"]) == 0
        assert sorted(read_eval_metrics(folder / "eval")) == [10, 12]
        assert json.loads((folder / "trial.json").read_text()) == {"reason": "the input has ended", "step": 12}
        (folder / "trial.json").unlink()  # as if killed before the record


def test_a_stop_within_an_evaluation_can_be_resumed(line, stopped_in_evaluations, capsys):
    """As after a stop within a training, the evaluation ends, and no further work begins."""
    with stopped_in_evaluations() as evaluated:
        assert main(["population", "line.toml"]) == 75
        assert evaluated == ["00000"]
        assert "The command was interrupted (SIGTERM). Start again to continue." in capsys.readouterr().err
        assert main(["population", "line.toml"]) == 0
        assert evaluated == ["00000", "00001", "00000", "00001"]


def test_a_failed_trial_is_not_trained_again(line, capsys, monkeypatch):
    line.write_text(line.read_text().replace("seeds = 2", 'seeds = [3]\nvalues = { "hparams.rate" = [0.1, 1e30] }'))
    assert main(["population", "line.toml"]) == 1
    assert json.loads(Path("runs/line-population/trials/00001/trial.json").read_text())["reason"].endswith("not finite")
    monkeypatch.setattr(ec.Estimator, "train", None)
    capsys.readouterr()
    assert main(["population", "line.toml"]) == 1
    assert "trial 1 failed: the loss is not finite at step" in capsys.readouterr().out


def test_secrets_are_not_written_and_still_compared(line):
    line.write_text(
        line.read_text().replace("rate = 0.3", 'rate = 0.3\napi_key = "abc-1"\nurl = "https://me:abc-2@host/"')
    )
    for name, opened in (("population", open_population), ("crossval", open_folds)):
        place = opened(line, Path(name)).folder / f"{name}.json"
        assert "abc" not in place.read_text()
        assert "********" in place.read_text()
        opened(line, Path(name))
    line.write_text(line.read_text().replace("abc-1", "abc-3"))
    for name, opened in (("population", open_population), ("crossval", open_folds)):
        with pytest.raises(ArgumentError, match="another configuration"):
            opened(line, Path(name))


def test_secrets_of_an_earlier_version_are_removed(line):
    line.write_text(line.read_text().replace("rate = 0.3", 'rate = 0.3\napi_key = "abc-1"'))
    trials = open_population(line)
    place = trials.folder / "population.json"
    place.write_text(json.dumps(json.dumps([trials.read.resolved.values, trials.values], sort_keys=True, default=str)))
    open_population(line)
    assert "abc-1" not in place.read_text()


@pytest.mark.parametrize("place", ["_row", "save"])
def test_a_signal_saves_all_runs_where_they_stand(tmp_path, monkeypatch, place):
    members = [member(tmp_path / "cut", number) for number in range(2)]
    population, calls = Population(members, way="together"), []
    owner = Population if place == "_row" else training
    known = getattr(owner, place)

    def signalled(*given):
        calls.append(given)
        if place == "_row" and len(calls) == 7:
            signal.raise_signal(signal.SIGTERM)
        if place == "save" and len(calls) == 1:
            raise PreemptedError("interrupted")  # as a training call does that receives the signal
        return known(*given)

    monkeypatch.setattr(owner, place, signalled)
    with pytest.raises(PreemptedError, match="2 runs was interrupted"):
        population.train(30)
    stands = 7 if place == "_row" else 25
    for one in members:
        assert read_checkpoint(latest_checkpoint(one.estimator.model_dir)).clock[0] == stands
    monkeypatch.setattr(owner, place, known)
    again = [member(tmp_path / "cut", number) for number in range(2)]
    Population(again, way="together").train(30)
    assert_same(again[1].estimator, alone(tmp_path / "alone", 1, 30))


def waits(features, labels, mode, params):
    """Makes a step take some milliseconds, so that the host is ahead of the device."""
    spec = model_fn(features, labels, mode, params)
    table = jnp.full((256, 256), 1e-3) + 0 * jax.lax.stop_gradient(spec.loss)
    table = jax.lax.fori_loop(0, 50, lambda _, value: jnp.tanh(value @ value), table)
    return spec._replace(loss=spec.loss + 0 * jax.lax.stop_gradient(table.sum()))


@pytest.mark.parametrize(
    ("way", "stands"),
    [*(pytest.param(way, 21, marks=pytest.mark.slow) for way in ("together", "apart")), ("together in fours", 24)],
)
def test_a_signal_of_a_long_training_waits_for_few_steps(tmp_path, monkeypatch, way, stands):
    """With four steps per dispatch, the dispatch in progress and the one already drawn are completed."""
    equal = [inputs(number, rows=32) for number in range(2)]
    members = [member(tmp_path, n, model=waits, input_fn=equal[n], save_checkpoints_steps=10**6) for n in range(2)]
    population, made, under_way = Population(members, way=way), [], []
    next_row, way_of = Population._row, Population._way

    def signalled(*given):
        going = [size for size, step in made if any(not leaf.is_ready() for leaf in jax.tree.leaves(step))]
        under_way.append(sum(going))
        if len(under_way) == 21:
            signal.raise_signal(signal.SIGTERM)
        return next_row(*given)

    def noting(*given):
        found = way_of(*given)

        def noted(make, size):
            def made_by(carried, rows):
                carried, values = make(carried, rows)
                made.append((size, values))
                return carried, values

            return made_by

        several = found.several and noted(found.several, 4)
        return replace(found, step=noted(found.step, 1), several=several)

    monkeypatch.setattr(Population, "_row", signalled)
    monkeypatch.setattr(Population, "_way", noting)
    with pytest.raises(PreemptedError, match="SIGTERM"):
        population.train(2**17)
    assert [population.step(one.name) for one in members] == [stands, stands]
    assert max(under_way) <= 4


@pytest.mark.parametrize("rows", [36, 32])
def test_several_steps_in_a_dispatch_are_the_steps_one_by_one(tmp_path, monkeypatch, rows):
    """This holds with batches of another shape, a save or the last step in between.

    The losses are those of each step.
    """
    told, save = {"together": {}, "together in fours": {}}, training.save
    members = {}
    for way, losses in told.items():

        def noted(one, losses=losses):
            losses[one.member.name] = losses.get(one.member.name, []) + [found["loss"] for found in one.losses.values()]
            save(one)

        monkeypatch.setattr(training, "save", noted)
        given = [inputs(number, rows=rows) for number in range(2)]
        members[way] = [member(tmp_path / way, n, input_fn=given[n], save_summary_steps=1) for n in range(2)]
        Population(members[way], way=way).train(38)
    for mine, its in zip(*members.values(), strict=True):
        assert_same(mine.estimator, its.estimator)
        np.testing.assert_allclose(*(losses[mine.name] for losses in told.values()), rtol=1e-6)
        assert len(told["together"][mine.name]) == 38


def test_a_step_that_is_slow_or_rounds_otherwise_is_made_by_itself(tmp_path):
    members = [member(tmp_path, number) for number in range(2)]
    population = Population(members, way="together")
    population.train(1)
    (ways,), states = population._ways.values(), [one.state for one in population._standing.values()]
    row = population._row([one for one in population._standing.values() if population._peek(one)])
    quick = replace(ways["together in fours"], several=lambda carried, rows: (carried, {}))
    assert fastest({**ways, "together in fours": quick}, states, row) in ("together", "apart")

    def step(carried, row):
        time.sleep(0.003)
        return ways["together"].step(carried, row)

    slow = {"together": replace(ways["together"], step=step), "together in fours": replace(quick, several=pytest.fail)}
    assert fastest(slow, states, row) == "together"


WORKER = """
import pathlib, signal, sys, time
from estimator_runs.workers import end_with_parent

def save(number, frame):
    time.sleep(0.3)
    pathlib.Path("saved").touch()
    sys.exit(75)

if "wait" in sys.argv[1]:
    signal.signal(signal.SIGTERM, save)
    end_with_parent()
    pathlib.Path("ready").touch()
    time.sleep(60)
sys.exit(75)
"""


@pytest.mark.parametrize("what", ["wait", "end"])
def test_interrupted_workers_have_saved_and_can_be_resumed(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    Path("one_worker.py").write_text(WORKER)

    def stop():
        while not Path("ready").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    if what == "wait":
        threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(PreemptedError, match="Start again to continue"):
        run_workers("one_worker", {"do": what}, 2)
    assert Path("saved").exists() == (what == "wait")
