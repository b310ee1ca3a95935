"""Tests of hooks that need the loop's help, in real runs: FeedFnHook, GoodputHook, and the work of a step."""

import json
import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import HookError
from plugins.hooks.tests import small_model


@pytest.mark.parametrize("prefetch", [0, 2])
def test_feed_fn_changes_every_batch_of_every_call(tmp_path: Path, prefetch: int):
    def halved(features: Any, labels: Any) -> Any:
        return {"x": features["x"] / 2}, labels

    def doubled_input() -> Any:
        return ec.inputs.numpy_input_fn(
            {"x": small_model.X * 2}, small_model.Y, batch_size=16, shuffle=True, seed=3, num_epochs=None
        )

    plain = small_model.make_estimator(tmp_path / "plain", prefetch=prefetch).train(
        small_model.train_input_fn(), max_steps=25
    )
    fed = small_model.make_estimator(tmp_path / "fed", prefetch=prefetch)
    fed.train(doubled_input(), max_steps=25, hooks=[eh.FeedFnHook(halved)])
    jax.tree.map(np.testing.assert_array_equal, fed.variables, plain.variables)

    evaluation = ec.inputs.numpy_input_fn({"x": small_model.X * 2}, small_model.Y, batch_size=64, shuffle=False)
    expected = plain.evaluate(small_model.eval_input_fn())
    assert fed.evaluate(evaluation, hooks=[eh.FeedFnHook(halved)]) == expected
    predicted = next(fed.predict(evaluation, hooks=[eh.FeedFnHook(halved)], yield_single_examples=False))
    np.testing.assert_array_equal(
        predicted["logits"], next(plain.predict(small_model.eval_input_fn(), yield_single_examples=False))["logits"]
    )


def test_several_feed_functions_in_the_order_of_the_hooks(tmp_path: Path):
    seen: list[float] = []
    estimator = small_model.make_estimator(tmp_path)
    hooks = [
        eh.FeedFnHook(lambda features, labels: ({"x": features["x"] * 0 + 3}, labels)),
        eh.FeedFnHook(lambda features, labels: ({"x": features["x"] ** 2}, labels)),
    ]

    class Looks(eh.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen.append(float(np.max(run.batch.features["x"])))

    estimator.train(small_model.train_input_fn(), max_steps=2, hooks=[*hooks, Looks()])
    assert seen == [9.0, 9.0]


def test_feed_fn_and_resume(tmp_path: Path):
    """FeedFnHook does not change the position of the input."""

    def flipped(features: Any, labels: Any) -> Any:
        return {"x": -features["x"]}, labels

    for folder, stops in (("straight", [40]), ("resumed", [20, 40])):
        for stop in stops:
            small_model.make_estimator(tmp_path / folder).train(
                small_model.train_input_fn(), max_steps=stop, hooks=[eh.FeedFnHook(flipped)]
            )
    one, other = ec.load_variables(str(tmp_path / "straight")), ec.load_variables(str(tmp_path / "resumed"))
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_feed_fn_refusals(tmp_path: Path):
    with pytest.raises(TypeError, match="feed_fn must be a function, given: int"):
        eh.FeedFnHook(3)  # type: ignore[arg-type]
    with pytest.raises(HookError, match=r"feed_fn must return \(features, labels\), got dict"):
        small_model.make_estimator(tmp_path).train(
            small_model.train_input_fn(), max_steps=2, hooks=[eh.FeedFnHook(lambda features, labels: features)]
        )


def test_goodput_accounts_for_every_second_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="estimator_hooks")
    estimator, goodput = small_model.make_estimator(tmp_path), eh.GoodputHook()

    def slow(features: Any, labels: Any) -> Any:
        threading_wait.wait(0.01)
        return features, labels

    import threading
    import time

    threading_wait = threading.Event()
    began = time.perf_counter()
    ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(small_model.train_input_fn(), max_steps=60, hooks=[eh.FeedFnHook(slow), goodput]),
        ec.EvalSpec(small_model.eval_input_fn()),
    )
    total = time.perf_counter() - began
    seconds = goodput.seconds
    assert set(seconds) == {"step", "input", "compile", "hooks", "evaluation", "checkpoint"}
    assert all(value > 0 for value in seconds.values()), seconds
    assert seconds["input"] >= 60 * 0.01
    assert sum(seconds.values()) <= total
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Goodput")]
    assert "waiting for input" in line
    assert "tracing and compiling" in line
    assert {"FeedFnHook", "GoodputHook"} <= set(goodput.hooks)
    assert 0 < sum(goodput.hooks.values()) <= total


def test_goodput_of_an_interrupted_call_goes_on(tmp_path: Path):
    class Breaks(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 25 if step < 25 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_model.make_estimator(tmp_path).train(
            small_model.train_input_fn(), max_steps=60, hooks=[eh.GoodputHook(), Breaks()]
        )
    hooks_file = json.loads((tmp_path / "checkpoints" / "20" / "hooks.json").read_text())
    goodput = eh.GoodputHook()
    small_model.make_estimator(tmp_path).train(small_model.train_input_fn(), max_steps=60, hooks=[goodput])
    assert goodput.seconds["compile"] > float(_find(hooks_file, "seconds")["compile"]) > 0


def _find(tree: Any, key: str) -> Any:
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        found = [_find(value, key) for value in tree.values()]
        return next((value for value in found if value is not None), None)
    return None


def test_work_of_a_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="estimator_hooks")
    estimator = small_model.make_estimator(tmp_path)
    flops: list[float | None] = []

    class Asks(eh.Hook):
        def after_create(self, run: Any) -> None:
            flops.append(run.step_flops())

        def next_step(self, step: int) -> int | None:
            return 1 if step < 1 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            flops.append(run.step_flops())

    estimator.train(
        small_model.train_input_fn(),
        max_steps=5,
        hooks=[eh.ParameterSummaryHook(), eh.ThroughputHook(2, peak_flops=1e9), Asks()],
    )
    assert flops[0] is None
    multiplications = 2 * 16 * 6 * 3  # of the forward product; the gradient adds once or twice as many
    assert flops[1] is not None
    assert 2 * multiplications <= flops[1] <= 10 * multiplications
    assert f"a step of 16 examples: {flops[1]:.4g} floating point operations" in caplog.text
    assert "mfu: " in caplog.text
    assert estimator.trace_counts == {"discovery": 1, "train": 1}


def test_an_evaluation_that_is_made_again_after_a_kill_shows_once(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Breaks(eh.Hook):
        def next_step(self, step: int) -> int | None:
            return 40 if step < 40 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            raise KeyboardInterrupt  # evaluated at 40, not saved

    def train(hooks: list[Any]) -> ec.Estimator:
        estimator = small_model.make_estimator(tmp_path)
        ec.train_and_evaluate(
            estimator,
            ec.TrainSpec(small_model.train_input_fn(), max_steps=60, hooks=hooks),
            ec.EvalSpec(small_model.eval_input_fn()),
        )
        return estimator

    with pytest.raises(KeyboardInterrupt):
        train([Breaks()])
    estimator = train([])
    events = EventAccumulator(estimator.eval_dir(), size_guidance={"scalars": 0}).Reload()
    assert [event.step for event in events.Scalars("loss")] == [20, 40, 60]
    estimator.evaluate(small_model.eval_input_fn(), checkpoint_path=str(tmp_path / "checkpoints" / "20"))
    events = EventAccumulator(estimator.eval_dir(), size_guidance={"scalars": 0}).Reload()
    assert sorted(event.step for event in events.Scalars("loss")) == [20, 20, 40, 60]
