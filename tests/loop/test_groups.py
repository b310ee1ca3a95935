"""Tests of several batches of an evaluation or of predictions in one dispatch. Results are the same, and hooks receive
what they requested.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core._loop import batches as batches_module
from estimator_core._loop import steps_per_dispatch
from estimator_core._loop.eval_total import EvalTotal
from estimator_core.errors import InputError
from estimator_core.testing import run_with_devices

K = [2, 7, 20, "auto"]
QUICK = [(None, 7), (None, "auto"), (1, 20), (19, 2), (19, "auto"), (45, 7), (45, 20)]


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
    """y = x w + b, with a metric that the host computes."""
    weights = ec.get_variable("w", (3,), jax.nn.initializers.normal(1.0))
    predictions = features["x"] @ weights + ec.get_variable("b", (), jax.nn.initializers.zeros)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": predictions})
    metrics = {"median": ec.metrics.on_host(lambda values: np.median(values), values=predictions)}
    loss = ((predictions - labels) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.01), eval_metric_ops=metrics)


@pytest.fixture(autouse=True)
def tries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes "auto" try groups at once, before a program has run for half a second."""
    monkeypatch.setattr(steps_per_dispatch, "_TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(steps_per_dispatch, "SLOW_STEP_SECONDS", 60.0)  # regardless of the load of the machine


@pytest.fixture
def choices(caplog: Any) -> Any:
    """Returns the log lines about the trials."""
    caplog.set_level(logging.INFO, "estimator_core")
    return lambda: [line for line in caplog.messages if line.startswith("Batches per dispatch:")]


def batches(data: Any, sizes: list[int]) -> Any:
    """Yields batches of these sizes, each from another place of the data."""

    def make() -> Iterator[Any]:
        for number, size in enumerate(sizes):
            rows = (np.arange(size) + number) % len(data.x)
            yield {"x": data.x[rows]}, data.y[rows]

    return make


class Recorder(ec.Hook):
    """Requests every `every`-th batch and keeps what it received."""

    def __init__(self, every: int) -> None:
        self.every, self.seen = every, list[tuple[int, int, float]]()

    def next_step(self, step: int) -> int:
        return step + self.every

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.seen.append((step, run.batch_size, float(np.sum(run.batch.features["x"]))))


class Listener(ec.Hook):
    """Requests the loss of every batch."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def begin(self, run: Any) -> None:
        run.follow("loss")

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        self.losses += values["loss"].tolist()


@pytest.mark.parametrize(
    ("steps", "k"),
    [
        pytest.param(steps, k, marks=() if (steps, k) in QUICK else pytest.mark.slow)
        for steps, k in itertools.product([None, 1, 19, 45], K)
    ],
)
def test_evaluations_give_the_same(make_estimator: Any, train_input: Any, data: Any, k: Any, steps: Any) -> None:
    estimator = make_estimator(batches_per_dispatch=1).train(train_input, steps=5)
    grouped = make_estimator(batches_per_dispatch=k)
    source = batches(data, [8] * 23 + [3] + [8] * 22 + [5])
    expected = estimator.evaluate(source, steps=steps)
    for _ in range(2):
        assert grouped.evaluate(source, steps=steps) == expected


@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.sampled_from([4, 4, 4, 4, 2]), min_size=1, max_size=60), k=st.sampled_from([1, 2, 3, 20]))
def test_predictions_are_the_same_rows_in_order(trained: Any, data: Any, sizes: list[int], k: int) -> None:
    estimator = trained(k)
    expected = np.concatenate([batch[0]["x"] for batch in batches(data, sizes)()]) @ estimator.get_variable_value("w")
    got = list(estimator.predict(batches(data, sizes), yield_single_examples=False))
    assert [len(each["y"]) for each in got] == sizes
    found = np.concatenate([each["y"] for each in got]) - estimator.get_variable_value("b")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, data: Any) -> Any:
    """One trained model, for each number of batches per dispatch."""
    directory, made = tmp_path_factory.mktemp("trained"), dict[Any, ec.Estimator]()

    def of(k: Any) -> ec.Estimator:
        if k not in made:
            config = ec.RunConfig(model_dir=str(directory), tf_random_seed=1, batches_per_dispatch=k)
            made[k] = ec.Estimator(model_fn, config=config)
            if len(made) == 1:
                made[k].train(batches(data, [8] * 3))
        return made[k]

    return of


def test_auto_takes_groups_only_with_the_same_bits(
    make_estimator: Any, train_input: Any, data: Any, choices: Any
) -> None:
    one = make_estimator(batches_per_dispatch=1).train(train_input, steps=5)
    auto = make_estimator()
    for source in (batches(data, [8] * 70), batches(data, [8] * 41 + [3])):
        left, right = (list(each.predict(source, yield_single_examples=False)) for each in (one, auto))
        for a, b in zip(left, right, strict=True):
            assert a["y"].tobytes() == b["y"].tobytes()
            assert type(a["y"]) is type(b["y"])
    assert len(choices()) == 1, "tried once for one shape, not once a call"


def test_a_hook_sees_the_batches_it_asked_for(make_estimator: Any, train_input: Any, data: Any) -> None:
    make_estimator().train(train_input, steps=5)
    source = batches(data, [8] * 50)
    for call in ("evaluate", "predict"):
        seen = []
        for k in (1, 5):
            hook = Recorder(every=9)
            result = getattr(make_estimator(batches_per_dispatch=k), call)(source, hooks=[hook])
            if call == "predict":
                assert len(list(result)) == 400
            seen.append(hook.seen)
        assert seen[0] == seen[1]
        assert [step for step, _, _ in seen[0]] == [9, 18, 27, 36, 45]


def test_a_hook_that_wants_every_batch_gets_it(make_estimator: Any, train_input: Any, data: Any) -> None:
    make_estimator().train(train_input, steps=5)
    heard = []
    for k in (1, 20):
        hook = Listener()
        make_estimator(batches_per_dispatch=k).evaluate(batches(data, [8] * 50), hooks=[hook])
        heard.append(hook.losses)
    assert heard[0] == heard[1]
    assert len(heard[0]) == 50


def test_host_metrics_get_every_batch(make_estimator: Any, train_input: Any, data: Any) -> None:
    source = batches(data, [8] * 50)
    estimator = make_estimator(model_fn, batches_per_dispatch=20).train(train_input, steps=3)
    rows = np.concatenate([batch[0]["x"] for batch in source()])
    expected = np.median(rows @ estimator.get_variable_value("w") + estimator.get_variable_value("b"))
    assert estimator.evaluate(source)["median"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("k", [1, 20])
def test_what_comes_before_a_broken_batch_is_predicted(
    make_estimator: Any, train_input: Any, data: Any, k: int
) -> None:
    make_estimator().train(train_input, steps=5)

    def broken() -> Iterator[Any]:
        yield from batches(data, [8] * 33)()
        raise ValueError("row 265 is broken")

    predictions = make_estimator(batches_per_dispatch=k).predict(lambda: broken())
    assert len(list(itertools.islice(predictions, 33 * 8))) == 33 * 8
    with pytest.raises(ValueError, match="row 265"):
        next(predictions)


def test_an_evaluation_of_so_many_steps_draws_no_more(make_estimator: Any, train_input: Any, data: Any) -> None:
    estimator = make_estimator(batches_per_dispatch=20).train(train_input, steps=5)
    drawn = 0

    def counted() -> Iterator[Any]:
        nonlocal drawn
        for batch in batches(data, [8] * 100)():
            drawn += 1
            yield batch

    iterator = counted()
    estimator.evaluate(lambda: iterator, steps=50)
    assert drawn == 50


def test_a_slow_input_is_not_tried(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, choices: Any
) -> None:
    monkeypatch.setattr(steps_per_dispatch, "SLOW_STEP_SECONDS", 1e-9)
    make_estimator().train(train_input, steps=5).evaluate(batches(data, [8] * 50))
    assert choices() == []


def test_large_batches_go_one_by_one(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, choices: Any
) -> None:
    monkeypatch.setattr(steps_per_dispatch, "_MOST_BYTES", 1000)
    estimator = make_estimator().train(train_input, steps=5)
    estimator.evaluate(batches(data, [8] * 50))
    assert [line.partition(" (")[0] for line in choices()] == []
    assert estimator.trace_counts["eval"] == 1


@pytest.mark.parametrize(("k", "dispatches"), [(1, 50), (20, 12)])
def test_groups_are_asked_for_by_a_number(
    make_estimator: Any, train_input: Any, data: Any, k: int, dispatches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch runs alone, then two groups, then nine batches that do not fill a third group."""
    make_estimator().train(train_input, steps=5)
    estimator, calls = make_estimator(batches_per_dispatch=k), list[int]()
    step = type(estimator._programs.predict_step(estimator._devices))
    for name in ("__call__", "several"):
        original = getattr(step, name)
        monkeypatch.setattr(step, name, lambda *args, original=original: (calls.append(1), original(*args))[1])
    assert len(list(estimator.predict(batches(data, [8] * 50)))) == 400
    assert len(calls) == dispatches


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Half:
    """A total that starts as bfloat16 and becomes float32."""

    total: Any

    def merge(self, other: Any) -> Any:
        return Half(total=self.total.astype(np.float32) + other.total.astype(np.float32))

    def compute(self) -> float:
        return float(self.total)


def custom(metrics: Any, touch: Any = lambda value: None) -> Any:
    """Returns a model_fn with these metrics of its features. It calls `touch` in each mode."""

    def model(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        predictions = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.normal(1.0))
        if mode != ec.ModeKeys.TRAIN:
            touch(predictions)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": predictions})
        loss = ((predictions - labels) ** 2).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.01), eval_metric_ops=metrics(features))

    return model


def test_a_metric_that_changes_its_dtype_is_no_obstacle(make_estimator: Any, train_input: Any, data: Any) -> None:
    model = custom(lambda features: {"sum": Half(total=jnp.sum(features["x"]).astype(jnp.bfloat16))})
    one = make_estimator(model, batches_per_dispatch=1).train(train_input, steps=3)
    source = batches(data, [8] * 60)
    assert make_estimator(model).evaluate(source) == one.evaluate(source)


@pytest.mark.parametrize(("rows", "later"), [(60, [20, 20, 20]), (53, [20, 20, *13 * [1]]), (7, 7 * [1])])
def test_a_later_evaluation_is_grouped_from_the_first_batch_on(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, rows: int, later: list[int]
) -> None:
    """The first one tries groups after its first batch. All results are the same bits."""
    monkeypatch.setattr(steps_per_dispatch, "_WORTH_IT", 0.0)
    model = custom(lambda features: {"mean": ec.metrics.mean(features["x"][:, 0])})
    estimator, sizes = make_estimator(model).train(train_input, steps=3), list[int]()
    add = EvalTotal.add
    monkeypatch.setattr(EvalTotal, "add", lambda self, dispatch: (sizes.append(dispatch.steps), add(self, dispatch))[1])
    estimator.evaluate(batches(data, [8] * 60))
    assert sizes[0] == 1
    assert 20 in sizes
    sizes.clear()
    source = batches(data, [8] * rows)
    result = estimator.evaluate(source)
    assert sizes == later
    assert result == make_estimator(model, batches_per_dispatch=1).evaluate(source)


def test_another_program_of_the_same_mode_is_tried_by_itself(
    make_estimator: Any, train_input: Any, data: Any, choices: Any
) -> None:
    def named(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        predictions = ec.tensor("y", features["x"] @ ec.get_variable("w", (3,)))
        return ec.EstimatorSpec(mode, loss=((predictions - labels) ** 2).mean(), train_op=optax.sgd(0.01))

    class Fetches(ec.Hook):
        def begin(self, run: Any) -> None:
            run.fetch("y")

    estimator, source = make_estimator(named).train(train_input, steps=3), batches(data, [8] * 60)
    for hooks, tried in (([], 1), ([], 1), ([Fetches()], 2), ([Fetches()], 2)):
        estimator.evaluate(source, hooks=hooks)
        assert len(choices()) == tried


def test_what_cannot_be_grouped_goes_one_by_one(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, choices: Any
) -> None:
    estimator = make_estimator().train(train_input, steps=3)

    def fails(*args: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr(type(estimator._programs.predict_step(estimator._devices)), "several", fails)
    assert len(list(estimator.predict(batches(data, [8] * 50)))) == 400
    assert "RESOURCE_EXHAUSTED" in choices()[0]


@pytest.mark.parametrize("call", ["evaluate", "predict"])
def test_callbacks_of_a_model_come_once_a_batch(make_estimator: Any, train_input: Any, data: Any, call: str) -> None:
    seen: list[int] = []
    model = custom(lambda features: {}, lambda value: jax.debug.callback(lambda _: seen.append(1), value))
    estimator = make_estimator(model).train(train_input, steps=3)
    result = getattr(estimator, call)(batches(data, [8] * 50))
    if call == "predict":
        list(result)
    jax.effects_barrier()
    assert len(seen) == 50


def test_batches_of_shapes_that_were_not_tried_go_one_by_one(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_per_dispatch, "_WORTH_IT", 0.0)
    estimator, sizes = make_estimator().train(train_input, steps=3), list[Any]()
    step = type(estimator._programs.predict_step(estimator._devices))
    several = step.several
    monkeypatch.setattr(step, "several", lambda *args: (sizes.append(args[2]["x"].shape), several(*args))[1])
    assert len(list(estimator.predict(batches(data, [8] * 60 + [30] * 60)))) == 60 * 38
    assert set(sizes) == {(20, 8, 3)}


class Clock:
    """Replaces `perf_counter`. It advances only when it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replaces the clock of groups and of their input."""
    clock = Clock()
    for module in (steps_per_dispatch, batches_module):
        monkeypatch.setattr(module, "perf_counter", clock)
    return clock


def taking(clock: Clock, seconds: Callable[[int], float], source: Any) -> Callable[[], Iterator[Any]]:
    """Yields the batches of an input, each of which takes some time to draw."""

    def make() -> Iterator[Any]:
        for number, batch in enumerate(source()):
            clock.now += seconds(number)
            yield batch

    return make


def test_a_slow_consumer_does_not_count(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, clock: Clock, choices: Any
) -> None:
    monkeypatch.setattr(steps_per_dispatch, "_TRIAL_SECONDS", 0.4)
    monkeypatch.setattr(steps_per_dispatch, "SLOW_STEP_SECONDS", 0.05)
    estimator = make_estimator().train(train_input, steps=3)
    for _ in range(2):
        predictions = estimator.predict(batches(data, [8] * 4), yield_single_examples=False)
        next(predictions)
        clock.now += 0.5
        predictions.close()
        assert estimator._programs.group_trials(estimator._devices, "infer").seconds == 0.0
    list(estimator.predict(taking(clock, lambda number: 0.02, batches(data, [8] * 60))))
    assert len(choices()) == 1


def test_an_input_that_becomes_slow_is_not_waited_for(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(steps_per_dispatch, "_WORTH_IT", 0.0)
    drawn = 0

    def counted() -> Iterator[Any]:
        nonlocal drawn
        for batch in taking(clock, lambda number: 0.2 if number > 70 else 0.0, batches(data, [8] * 130))():
            drawn += 1
            yield batch

    estimator = make_estimator().train(train_input, steps=3)
    behind = [drawn - given for given, _ in enumerate(estimator.predict(counted, yield_single_examples=False), 1)]
    assert max(behind[:60]) >= 20
    assert max(behind[100:]) <= 3


class StopsAt(ec.Hook):
    """Requests a stop at a batch, or in one of the calls before the first batch."""

    def __init__(self, when: int | str) -> None:
        self.when = when

    def begin(self, run: Any) -> None:
        if self.when == "begin":
            run.request_stop("enough")

    def after_create(self, run: Any) -> None:
        if self.when == "after_create":
            run.request_stop("enough")

    def next_step(self, step: int) -> int | None:
        return self.when if isinstance(self.when, int) and step < self.when else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        run.request_stop("enough")


def test_a_hook_that_stops_an_evaluation_loses_no_batch(make_estimator: Any, train_input: Any, data: Any) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    iterator = batches(data, [8] * 60)()
    estimator.evaluate(lambda: iterator, hooks=[StopsAt(9)])
    assert sum(1 for _ in iterator) == 51


@pytest.mark.parametrize("when", ["begin", "after_create"])
def test_a_stop_before_the_first_batch(make_estimator: Any, train_input: Any, data: Any, when: str) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    assert len(list(estimator.predict(batches(data, [8] * 5), hooks=[StopsAt(when)]))) == 8
    if when == "begin":
        with pytest.raises(InputError, match="requested a stop before the first batch"):
            estimator.evaluate(batches(data, [8] * 5), hooks=[StopsAt(when)])
    else:
        estimator.evaluate(batches(data, [8] * 5), hooks=[StopsAt(when)])


class Clocked(ec.Hook):
    """A hook whose clock is due from the start. It records the batches at which it is called."""

    def __init__(self) -> None:
        self.called: list[int] = []

    def next_step(self, step: int) -> ec.Wake | None:
        return None if self.called else ec.Wake(time=0.0)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.called.append(step)


@pytest.mark.parametrize("call", ["evaluate", "predict"])
def test_a_clock_is_looked_at_from_the_first_batch_on(
    make_estimator: Any, train_input: Any, data: Any, call: str
) -> None:
    estimator, hook = make_estimator().train(train_input, steps=3), Clocked()
    result = getattr(estimator, call)(batches(data, [8] * 3), hooks=[hook])
    if call == "predict":
        list(result)
    assert hook.called == [1]


@pytest.mark.slow
def test_several_devices() -> None:
    done = run_with_devices(8, ON_EIGHT_DEVICES)
    assert "the same" in done


ON_EIGHT_DEVICES = """
import tempfile
import jax, numpy as np, optax
import estimator_core as ec
from estimator_core._loop import steps_per_dispatch

steps_per_dispatch._TRIAL_SECONDS, steps_per_dispatch.SLOW_STEP_SECONDS, steps_per_dispatch._WORTH_IT = 0.0, 60.0, 0.0
x = np.random.default_rng(0).normal(size=(48, 3)).astype(np.float32)

def model_fn(features, labels, mode):
    y = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.normal(1.0))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"constant": jax.numpy.float32(3), "y": y})
    metrics = {"m": ec.metrics.mean(y)}
    return ec.EstimatorSpec(mode, loss=(y**2).mean(), train_op=optax.sgd(0.1), eval_metric_ops=metrics)

directory, results = tempfile.mkdtemp(), []
for k in (1, "auto"):
    config = ec.RunConfig(model_dir=directory, tf_random_seed=1, mesh={"data": -1}, batches_per_dispatch=k)
    estimator = ec.Estimator(model_fn, config=config)
    estimator.train(lambda: [({"x": x}, x[:, 0])], max_steps=1)
    for rows in (48, 5):
        source = lambda: iter([({"x": np.roll(x, n, 0)[:rows]}, x[:rows, 0]) for n in range(50)])
        predictions = list(estimator.predict(source, yield_single_examples=False))
        results.append((estimator.evaluate(source), [(p["constant"].tobytes(), p["y"].tobytes()) for p in predictions]))
tried = estimator._programs.group_trials(estimator._devices, "infer")
assert set(tried.counts.values()) == {20}, tried
assert results[:2] == results[2:]
print("the same")
"""


def test_auto_keeps_single_batches_where_a_group_changes_bits(
    make_estimator: Any, train_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch, choices: Any
) -> None:
    """Each trace of this model computes other numbers, so the program of a group differs from that of one batch."""
    monkeypatch.setattr(steps_per_dispatch, "_WORTH_IT", 0.0)  # regardless of how long a group takes
    traces = itertools.count(1)

    def traced_model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        weights = ec.get_variable("w", (3,), jax.nn.initializers.ones)
        predictions = (features["x"] @ weights) * 2.0 ** next(traces)
        loss = None if labels is None else ((predictions - labels) ** 2).mean()
        return ec.EstimatorSpec(mode, predictions={"y": predictions}, loss=loss, train_op=optax.sgd(0.0))

    estimator = make_estimator(traced_model_fn).train(train_input, steps=2)
    source = batches(data, [8] * 60)
    got = list(estimator.predict(source, yield_single_examples=False))
    assert len(choices()) == 1
    assert "the last bits differ" in choices()[0]
    sums = [batch[0]["x"].sum(axis=1) for batch in source()]
    factors = np.concatenate([each["y"] / total for each, total in zip(got, sums, strict=True)])
    np.testing.assert_allclose(factors, factors[0], rtol=1e-3)
