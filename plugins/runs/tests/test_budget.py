"""Tests of the search for learning rates and batch sizes before a training."""

import json
from pathlib import Path

import jax
import numpy as np
import optax
import pytest
from line_files import CODE, TOML

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_experiment.program import load_module
from estimator_runs import batch_sizes, data_curve, extrapolate, rate_range, read_rows
from estimator_runs.budget import data, sizes
from estimator_runs.budget.rates import steepest


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("line_code.py").write_text(CODE)
    Path("line.toml").write_text(TOML)
    return load_module(Path("line_code.py"))


def estimator(line):
    return ec.Estimator(line.model_fn, config=ec.RunConfig("unused", tf_random_seed=1), params=ec.HParams(rate=0.3))


def test_the_range_of_rates_is_that_of_a_loop_by_hand(line):
    """The loop by hand is gradient descent on (slope x + offset - 3 x - 1)^2, with all rows in each batch."""
    found = rate_range(estimator(line), line.batches(32), low=1e-3, high=10.0, steps=30)
    rates, x = np.geomspace(1e-3, 10.0, 30), np.linspace(-1, 1, 32)
    first = ec.Estimator(line.model_fn, config=ec.RunConfig("first", tf_random_seed=1), params=ec.HParams(rate=0.0))
    values = first.train(line.batches(32), steps=1).variables
    slope, offset = float(values["slope"]), float(values["offset"])
    mean, smooth = 0.0, []
    for step, rate in enumerate(rates[: len(found.rates)]):
        error = slope * x + offset - 3 * x - 1
        mean = 0.9 * mean + 0.1 * np.mean(error**2)
        smooth.append(mean / (1 - 0.9 ** (step + 1)))
        slope, offset = slope - rate * np.mean(2 * error * x), offset - rate * np.mean(2 * error)
    np.testing.assert_allclose(found.losses, smooth, rtol=1e-4)
    np.testing.assert_allclose(found.rates, rates[: len(found.rates)])
    assert found.diverged in rates
    assert 1e-2 < found.suggested < found.diverged
    assert not Path("unused").exists()


def test_noise_of_the_first_batches_suggests_no_rate():
    """The loss falls from 1 to 0 around the rate 0.01. The data of the first two batches differ by more than that."""
    rates, random = np.geomspace(1e-6, 1.0, 50), np.random.default_rng(0)
    true = 1 / (1 + (rates / 0.01) ** 2)
    for _ in range(50):
        raw = true + 0.3 * random.normal(size=50)
        raw[:2] = 1.8, 0.4
        mean, losses = 0.0, []
        for step, loss in enumerate(raw):
            mean = 0.9 * mean + 0.1 * loss
            losses.append(mean / (1 - 0.9 ** (step + 1)))
        assert 1e-3 < steepest(rates, losses) < 1.0


@pytest.mark.parametrize(
    ("low", "high", "end", "said"),
    [("1e-6", "1e-3", "highest", "a higher --high"), ("0.1", "1", "lowest", "a lower --low")],
)
def test_a_rate_at_an_end_of_the_range_is_told(line, capsys, low, high, end, said):
    words = ["budget", "rate", "line.toml", "--low", low, "--high", high, "--steps", "20"]
    words += ["--set", "inputs.train.args.batch_size=32"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert f"This is at the {end} end of the range of this test: try {said}." in told
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["at_end"] == end


@pytest.mark.slow
def test_sizes_double_until_one_does_not_fit(line):
    found = batch_sizes(estimator(line), line.batches(8), largest=64)
    assert [one.size for one in found] == [8, 16, 32, 64]
    assert all(one.examples_per_second > 0 for one in found)
    memory = [one.memory for one in found]
    assert memory == sorted(memory)
    assert memory[-1] > memory[0]
    cut = batch_sizes(estimator(line), line.batches(8), memory=memory[1], largest=64)
    assert [(one.size, one.seconds is None) for one in cut] == [(8, False), (16, False), (32, True)]


@pytest.mark.parametrize("where", ["_seconds", "_needed"])
def test_a_size_for_which_the_memory_runs_out_does_not_fit(line, monkeypatch, capsys, where):
    calls, known = [], getattr(sizes, where)

    def runs_out(*given):
        calls.append(given)
        if len(calls) % 3 == 0:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")
        return known(*given)

    monkeypatch.setattr(sizes, where, runs_out)
    found = batch_sizes(estimator(line), line.batches(8), largest=64)
    assert [(one.size, one.seconds is None) for one in found] == [(8, False), (16, False), (32, True)]
    assert (found[-1].memory is None) == (where == "_needed")
    assert main(["budget", "batch", "line.toml", "--largest", "64"]) == 0
    assert "does not fit" in capsys.readouterr().out


def test_no_size_above_the_largest_is_tried(line, capsys):
    with pytest.raises(ArgumentError, match="have 8 examples, and the largest size to try is 4"):
        batch_sizes(estimator(line), line.batches(8), largest=4)
    assert main(["budget", "batch", "line.toml", "--largest", "7"]) == 2
    assert "--largest 8" in capsys.readouterr().err


def test_what_cannot_be_tried_is_named(line):
    with pytest.raises(ArgumentError, match=r"has no 'rate' in its state. It has \['learning_rate'\]"):
        rate_range(estimator(line), line.batches(8), name="rate")
    with pytest.raises(ArgumentError, match="0 < low < high"):
        rate_range(estimator(line), line.batches(8), low=1.0, high=0.1)
    with pytest.raises(ArgumentError, match=r"the hook Hook sees .* Leave it out"):
        batch_sizes(estimator(line), line.batches(8), hooks=[ec.Hook()])


def test_a_rate_that_a_schedule_sets_is_refused(line):
    def model_fn(features, labels, mode, params):
        schedule = optax.cosine_decay_schedule(0.1, 1000)
        train_op = optax.inject_hyperparams(optax.sgd)(learning_rate=schedule)
        return line.model_fn(features, labels, mode, params)._replace(train_op=train_op)

    one = ec.Estimator(model_fn, config=ec.RunConfig("unused", tf_random_seed=1), params=ec.HParams(rate=0.3))
    with pytest.raises(ArgumentError, match="A schedule of the optimizer sets 'learning_rate'"):
        rate_range(one, line.batches(8), steps=5)


def test_the_commands_print_tables_and_write_pages(line, capsys):
    pytest.importorskip("estimator_report")
    words = ["--low", "0.001", "--steps", "5", "--output", "rates.html"]
    assert main(["budget", "rate", "line.toml", *words]) == 0
    assert "suggested" in capsys.readouterr().out
    assert Path("rates.html").read_text().count("<polyline") == 1
    assert main(["budget", "batch", "line.toml", "--largest", "16", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["largest"], [one["size"] for one in said["sizes"]]) == (16, [8, 16])
    assert main(["budget", "batch", "line.toml", "--memory", "1e-9"]) == 1  # one byte
    assert "does not fit" in capsys.readouterr().out


def test_the_interval_of_more_rows_covers_what_runs_reach():
    """In 100 draws from a known power law with noise, the interval covers a further run about 95 times."""
    random, sizes = np.random.default_rng(0), [100, 200, 400, 800, 1600]
    covered, widths = 0, []
    for _ in range(100):
        values = [0.1 + 2 * size**-0.5 + 0.01 * random.normal(size=3) for size in sizes]
        (one,) = extrapolate(sizes, values, [6400])
        covered += one.low <= 0.1 + 2 * 6400**-0.5 + 0.01 * random.normal() <= one.high
        widths.append(one.high - one.low)
    assert 85 <= covered <= 99
    assert np.median(widths) < 0.15
    with pytest.raises(ArgumentError, match="there are 6 runs at 2 sizes"):
        extrapolate([100, 200], [[1.0, 1.1, 1.2]] * 2, [400])


@pytest.mark.slow
def test_a_learning_curve_is_that_of_runs_on_parts(line):
    found = data_curve(
        estimator(line), line.batches(8), line.batches(8, epochs=1), steps=5, metric="error", rows=32, sizes=3, seeds=2
    )
    assert found.sizes == [8, 16, 32]
    assert [one.rows for one in found.predictions] == [64, 128, 320]
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    rows = np.random.default_rng(1).permutation(32)[:8]
    part = ec.inputs.numpy_input_fn(
        {"x": x[rows]}, (3 * x + 1)[rows], batch_size=8, num_epochs=None, shuffle=True, seed=1
    )
    single = ec.Estimator(
        line.model_fn, config=ec.RunConfig("single", tf_random_seed=1), params=ec.HParams(rate=0.3)
    ).train(part, max_steps=5)
    assert found.values[0][1] == pytest.approx(single.evaluate(line.batches(8, epochs=1))["error"], rel=1e-6)
    assert not Path("unused").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metric", "speed", "--rows", "32", "--sizes", "3", "--seeds", "2"], "no metric 'speed'"),
        (["--rows", "16", "--sizes", "3"], "a batch of 8 rows: 16 rows were read for 3 sizes"),
        (["--sizes", "2"], "needs at least 3 sizes"),
        (["--rows", "32", "--sizes", "3", "--seeds", "1"], "more than 3 runs: 3 sizes of 1 seeds are 3"),
        (["--rows", "0"], "rows of a learning curve must be at least 1"),
        (["--steps", "0", "--rows", "32"], "steps of a learning curve must be at least 1"),
        ([], "never ends (num_epochs=None), so not all of it can be read. Give it num_epochs=1, or say how many"),
        (["--set", "hooks=['step_counter']"], "calls no hooks"),
    ],
)
def test_a_learning_curve_is_refused(line, words, said, capsys):
    assert main(["budget", "data", "line.toml", "--steps", "1", *words]) != 0
    assert said in capsys.readouterr().err


def test_a_value_that_is_not_finite_is_refused_with_its_run(line, monkeypatch):
    reached = iter([1.0, 2.0, float("inf")])
    monkeypatch.setattr(data, "_reached", lambda *given: {"error": next(reached)})
    with pytest.raises(ArgumentError, match="'error' of the run on 16 rows with seed 0 is inf"):
        data_curve(
            estimator(line), line.batches(8), line.batches(8), steps=1, metric="error", rows=32, sizes=3, seeds=2
        )
    with pytest.raises(ArgumentError, match="run 1 on 200 rows is nan"):
        extrapolate([100, 200, 400], [[1.0, 1.1], [1.0, float("nan")], [1.0, 0.9]], [800])


def numbered(rows):
    return ec.inputs.numpy_input_fn(
        {"x": np.arange(rows, dtype=np.float32)}, np.arange(rows), batch_size=8, num_epochs=None, shuffle=True, seed=1
    )


@pytest.mark.parametrize(("there", "read"), [(64, 64), (60, 56)], ids=["whole batches", "a batch over the border"])
def test_rows_of_an_input_that_begins_again_are_read_once(there, read):
    endless = numbered(there)
    found = read_rows(endless, most=1024)
    assert len(found) == len(set(found.labels.tolist())) == read
    assert len(read_rows(endless, most=20)) == 20
    with pytest.raises(ArgumentError, match=r"never ends .*num_epochs=1"):
        read_rows(endless)
    with pytest.raises(ArgumentError, match="begins again within its first batch"):
        read_rows(numbered(5), most=1024)


def test_rows_of_files_that_begin_again_are_read_once(tmp_path):
    reading = pytest.importorskip("estimator_inputs")
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{n}.5,{n}\n" for n in range(20)))
    endless = reading.csv_input_fn(str(tmp_path / "rows.csv"), 8, shuffle=False, label_name="y", num_epochs=None)
    assert read_rows(endless, most=1024).labels.tolist() == list(range(16))


@pytest.mark.slow
def test_the_command_prints_the_learning_curve(line, capsys):
    words = ["--steps", "2", "--rows", "32", "--sizes", "3", "--seeds", "2", "--metric", "error"]
    assert main(["budget", "data", "line.toml", *words]) == 0
    lines = [text.split() for text in capsys.readouterr().out.splitlines() if text]
    assert [row[0] for row in lines if row[0].isdigit()] == ["8", "16", "32", "64", "128", "320"]
    assert main(["budget", "data", "line.toml", *words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["predictions"]) == 3
