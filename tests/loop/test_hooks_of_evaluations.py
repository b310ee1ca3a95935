"""What the hooks of the core do in an evaluation, and the places in which one of them can do nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
from estimator_core.builtin_hooks import CheckpointSaverHook, NanTensorHook, StepCounterHook, SummarySaverHook


def batches(count: int, *, nan_at: int | None = None) -> Callable[[], Any]:
    """Batches of two rows, whose values are the index of the batch."""
    values = [np.nan if index == nan_at else float(index) for index in range(count)]
    return lambda: iter([({"x": np.full(2, value, np.float32)}, np.zeros(2, np.float32)) for value in values])


def model(hooks: Callable[[], Sequence[ec.Hook]] = tuple) -> Callable[..., ec.EstimatorSpec]:
    """A model whose summaries show the batch, and whose metric `mean` has the name of one of them."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        x = features["x"]
        y = x * ec.get_variable("w", (), initializer=lambda key, shape, dtype: jnp.zeros(shape, dtype))
        ec.tensor("hidden", x)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y}, prediction_hooks=hooks())
        ec.summary.scalar("shown", x.mean() + 5)
        ec.summary.scalar("mean", x.mean())
        ec.summary.histogram("values", x)
        loss = y.mean() + (0 if mode == ec.ModeKeys.TRAIN else x.mean())
        metrics = {"mean": ec.metrics.mean(x.mean())}
        return ec.EstimatorSpec(
            mode, loss=loss, train_op=optax.sgd(0.0), eval_metric_ops=metrics, evaluation_hooks=hooks()
        )

    return model_fn


CALLS: dict[str, Callable[[Any, ec.Hook], object]] = {
    ec.ModeKeys.TRAIN: lambda estimator, hook: estimator.train(batches(1), steps=1, hooks=[hook]),
    ec.ModeKeys.EVAL: lambda estimator, hook: estimator.evaluate(batches(1), hooks=[hook]),
    ec.ModeKeys.PREDICT: lambda estimator, hook: list(estimator.predict(batches(1), hooks=[hook])),
}


def points(directory: str | Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a directory: step and value of each point, by tag."""
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0}).Reload()
    tags: Any = events.Tags()
    shown = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags["scalars"]}
    return shown | {tag: [(one.step, 0.0) for one in events.Histograms(tag)] for tag in tags["histograms"]}


@pytest.mark.parametrize("k", [1, 20])
@pytest.mark.parametrize("given", ["call", "spec"])
def test_an_evaluation_writes_the_summaries_of_its_first_batch(make_estimator: Any, given: str, k: int) -> None:
    hook = SummarySaverHook(save_steps=2)
    estimator = make_estimator(model(lambda: [hook] if given == "spec" else []), batches_per_dispatch=k)
    for _ in range(2):
        estimator.train(batches(4), steps=2)
        estimator.evaluate(batches(5), hooks=[hook] if given == "call" else [])
    shown = points(estimator.eval_dir())
    assert shown["shown"] == [(2, 5.0), (4, 5.0)]
    assert shown["values"] == [(2, 0.0), (4, 0.0)]
    assert shown["mean"] == [(2, 2.0), (4, 2.0)], "the metric over all batches, not the summary of one"
    assert shown["loss"] == [(2, 2.0), (4, 2.0)]


@pytest.mark.parametrize("place", ["eval_dir", "inside", "outside"])
def test_the_own_directory_of_a_summary_hook_keeps_every_evaluation(
    make_estimator: Any, tmp_path: Path, place: str
) -> None:
    estimator = make_estimator(model())
    inside = Path(estimator.model_dir) / "summaries"
    own = {"eval_dir": estimator.eval_dir(), "inside": inside, "outside": tmp_path / "summaries"}[place]
    for _ in range(3):
        estimator.train(batches(6), steps=2)
        estimator.evaluate(batches(3), hooks=[SummarySaverHook(save_steps=1, output_dir=own)])
    assert points(own)["shown"] == [(2, 5.0), (4, 5.0), (6, 5.0)]
    assert points(estimator.eval_dir())["loss"] == [(2, 1.0), (4, 1.0), (6, 1.0)]


@pytest.mark.parametrize("place", ["eval_dir", "inside"])
def test_so_does_the_one_of_evaluations_in_a_training(make_estimator: Any, place: str) -> None:
    for last in (4, 8):
        estimator = make_estimator(model(), save_checkpoints_steps=2)
        own = estimator.eval_dir() if place == "eval_dir" else str(Path(estimator.model_dir) / "summaries")
        hooks = [SummarySaverHook(save_steps=1, output_dir=own)]
        ec.train_and_evaluate(
            estimator, ec.TrainSpec(batches(20), max_steps=last), ec.EvalSpec(batches(3), hooks=hooks)
        )
    assert points(own)["shown"] == [(step, 5.0) for step in (2, 4, 6, 8)]
    assert points(estimator.eval_dir())["loss"] == [(step, 1.0) for step in (2, 4, 6, 8)]


@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_the_rate_of_an_evaluation_is_at_the_step_of_its_weights(
    make_estimator: Any, tmp_path: Path, verb: str
) -> None:
    estimator = make_estimator(model()).train(
        batches(9), steps=5, hooks=[StepCounterHook(every_n_steps=1, output_dir=tmp_path)]
    )
    counter = StepCounterHook(every_n_steps=2, output_dir=tmp_path)
    for _ in range(2):
        if verb == "evaluate":
            estimator.evaluate(batches(9), hooks=[counter])
        else:
            list(estimator.predict(batches(9), hooks=[counter]))
    assert [step for step, _ in points(tmp_path)["global_step/sec"]] == [2, 3, 4, 5, *[5] * 8]


class Counts(ec.Hook):
    """Counts its steps."""

    seen = 0

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.seen += 1


class Remembers(Counts):
    """Has state, which belongs to one call."""

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def restore(self, state: Any) -> None:
        self.seen = state["seen"]


@pytest.mark.parametrize("make", [lambda: SummarySaverHook(save_steps=1), Remembers])
def test_a_hook_with_state_is_not_shared_with_evaluations(make_estimator: Any, make: Callable[[], ec.Hook]) -> None:
    hook, estimator = make(), make_estimator(model(), save_checkpoints_steps=2)
    train_spec = ec.TrainSpec(batches(9), max_steps=4, hooks=[hook])
    specs = [ec.EvalSpec(batches(3)), ec.EvalSpec(batches(3), name="other", hooks=[hook])]
    with pytest.raises(
        ec.errors.ArgumentError, match=f"A {type(hook).__name__} is in the hooks of both TrainSpec and EvalSpec"
    ):
        ec.train_and_evaluate(estimator, train_spec, specs)
    assert not Path(estimator.model_dir).exists()
    ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(batches(3), hooks=[make()]))
    estimator.evaluate(batches(2), hooks=[hook])  # the training has ended


@pytest.mark.parametrize("verb", ["evaluate", "predict"])
@pytest.mark.parametrize("where", ["exporter", "hook"])
def test_a_hook_with_state_is_not_shared_with_a_call_inside_a_training(
    make_estimator: Any, where: str, verb: str
) -> None:
    hook = Remembers()

    def call(estimator: Any) -> None:
        list(getattr(estimator, verb)(batches(3), hooks=[hook]))

    class Inside(Counts):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            call(run.estimator)

    class Evaluates:
        name = "evaluates"

        def export(self, estimator: Any, *arguments: Any) -> None:
            call(estimator)

    estimator = make_estimator(model(), save_checkpoints_steps=2)
    train_spec = ec.TrainSpec(batches(9), max_steps=2, hooks=[hook, *([Inside()] if where == "hook" else [])])
    eval_spec = ec.EvalSpec(batches(3), exporters=[Evaluates()] if where == "exporter" else [])
    with pytest.raises(ec.errors.HookError, match=r"Remembers from .*: the call around this one has it too") as told:
        ec.train_and_evaluate(estimator, train_spec, eval_spec)
    assert "Give each call its own hook." in str(told.value)
    trained = {"exporter": 2, "hook": 1}[where]
    assert hook.seen == trained
    estimator.train(batches(1), steps=1)
    call(estimator)  # the training has ended
    assert hook.seen == trained + 3


class Foreign:
    """Has the methods of a hook that all code calls, but no `state`."""

    def begin(self, *arguments: Any) -> None:
        """Does nothing."""

    after_create = before_step = after_step = end = next_step = begin


def test_a_hook_that_is_not_derived_is_told_what_it_lacks(make_estimator: Any) -> None:
    hooks: Any = [Foreign()]
    train_spec = ec.TrainSpec(batches(9), max_steps=4, hooks=hooks)
    estimator = make_estimator(model(), save_checkpoints_steps=2)
    with pytest.raises(ec.errors.HookError, match=r"Foreign.*it has no method .*Derive it from ec\.Hook"):
        ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(batches(3)))


def test_a_hook_without_state_may_be_in_the_training_and_in_its_evaluations(make_estimator: Any) -> None:
    hook = Counts()
    estimator = make_estimator(model(), save_checkpoints_steps=2)
    ec.train_and_evaluate(
        estimator, ec.TrainSpec(batches(9), max_steps=4, hooks=[hook]), ec.EvalSpec(batches(3), hooks=[hook])
    )
    assert hook.seen == 4 + 2 * 3


RESULTS = {"text": "good", "none": None, "dict": {"a": 1}, "complex": 1j, "ragged": [[1], [1, 2]], "object": [object()]}


@pytest.mark.parametrize("kind", list(RESULTS))
def test_a_result_that_cannot_be_written_is_refused_with_its_name(make_estimator: Any, kind: str) -> None:
    class Adds(ec.Hook):
        def end(self, run: Any) -> None:
            if not run.failed:
                run.add_result("verdict", RESULTS[kind])

    estimator = make_estimator(model()).train(batches(4), steps=2)
    with pytest.raises(ec.errors.HookError, match="Result 'verdict' must be a number, an array or a list") as told:
        estimator.evaluate(batches(2), hooks=[Adds()])
    assert "in hook" in told.value.__notes__[0]
    assert "Adds from" in told.value.__notes__[0]


def test_results_of_all_allowed_kinds_are_written(make_estimator: Any) -> None:
    results = {"whole": 3, "real": np.float32(0.5), "array": jnp.ones(2), "rows": [{"a": [1, "b"]}], "texts": ["good"]}

    class Adds(ec.Hook):
        def end(self, run: Any) -> None:
            for name, value in results.items():
                run.add_result(name, value)

    estimator = make_estimator(model()).train(batches(4), steps=2)
    found = estimator.evaluate(batches(2), hooks=[Adds()])
    assert all(found[name] is value for name, value in results.items())
    recorded = ec.read_eval_metrics(estimator.eval_dir())[2]
    assert {name: recorded[name] for name in results} == {**results, "array": [1.0, 1.0]}


def test_hooks_know_all_summaries_of_an_evaluation_and_may_fetch_them(make_estimator: Any) -> None:
    seen: dict[str, Any] = {}

    class Look(ec.Hook):
        def after_create(self, run: Any) -> None:
            seen.update(run.output_kinds)
            run.fetch("shown")

        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen[f"at {step}"] = float(out["shown"])

    make_estimator(model()).train(batches(4), steps=2).evaluate(batches(2), hooks=[Look()])
    kinds = {"loss": "scalar", "hidden": "tensor", "shown": "scalar", "values": "histogram", "mean": "tensor"}
    assert seen == {**kinds, "at 1": 5.0, "at 2": 6.0}


@pytest.mark.parametrize("mode", list(CALLS))
def test_a_hook_may_fetch_an_output_when_it_knows_the_names(make_estimator: Any, mode: str) -> None:
    seen: list[list[float]] = []

    class Fetches(ec.Hook):
        def after_create(self, run: Any) -> None:
            run.fetch("y" if mode == ec.ModeKeys.PREDICT else "hidden")

        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen.append(out["y" if mode == ec.ModeKeys.PREDICT else "hidden"].tolist())

    CALLS[mode](make_estimator(model()).train(batches(4), steps=1), Fetches())
    assert seen == [[0.0, 0.0]]


def test_a_hook_may_follow_a_summary_when_it_knows_the_names(make_estimator: Any) -> None:
    seen: list[float] = []

    class Follows(ec.Hook):
        def after_create(self, run: Any) -> None:
            run.follow("shown")

        def on_values(self, run: Any, steps: range, values: Any) -> None:
            seen.extend(values["shown"].tolist())

    make_estimator(model()).train(batches(4), steps=2).evaluate(batches(3), hooks=[Follows()])
    assert seen == [5.0, 6.0, 7.0]


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("k", [1, 20])
def test_the_loss_of_an_evaluation_is_watched(make_estimator: Any, k: int, fails: bool) -> None:
    estimator = make_estimator(model(), batches_per_dispatch=k).train(batches(4), steps=2)
    hook = NanTensorHook(fail_on_nan_loss=fails)
    assert estimator.evaluate(batches(9), hooks=[hook])["loss"] == 4.0
    if not fails:
        assert np.isnan(estimator.evaluate(batches(9, nan_at=6), hooks=[hook])["loss"])
        return
    with pytest.raises(ec.errors.NanLossDuringTrainingError, match=r"in mode 'eval'.*loss is nan at step 7\.") as told:
        estimator.evaluate(batches(9, nan_at=6), hooks=[hook])
    assert told.value.step == 7
    assert "No checkpoint contains this state" not in str(told.value)


@pytest.mark.parametrize("place", ["spec", "evaluate", "predict", "eval_spec", "training_hooks"])
def test_a_saver_that_could_save_nothing_is_refused(make_estimator: Any, place: str) -> None:
    saver = CheckpointSaverHook(save_steps=1)
    train_spec = ec.TrainSpec(batches(20), max_steps=4)

    def with_saver(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        spec = model()(features, labels, mode, params)
        return ec.EstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, training_chief_hooks=[saver])

    estimator = make_estimator(model(lambda: [saver] if place == "spec" else []))
    calls: dict[str, Callable[[], Any]] = {
        "spec": lambda: estimator.evaluate(batches(2)),
        "evaluate": lambda: estimator.evaluate(batches(2), hooks=[saver]),
        "predict": lambda: list(estimator.predict(batches(2), hooks=[saver])),
        "eval_spec": lambda: ec.train_and_evaluate(estimator, train_spec, ec.EvalSpec(batches(2), hooks=[saver])),
        "training_hooks": lambda: make_estimator(with_saver).train(batches(9), steps=2),
    }
    if place != "training_hooks":
        estimator.train(batches(4), steps=2)
    with pytest.raises(ec.errors.HookError, match="saves nothing here"):
        calls[place]()


def test_two_policies_of_one_call_are_refused(make_estimator: Any) -> None:
    hooks = [CheckpointSaverHook(save_steps=1), CheckpointSaverHook(save_secs=60)]
    with pytest.raises(ec.errors.ArgumentError, match="CheckpointSaverHook, CheckpointSaverHook all decide"):
        make_estimator(model()).train(batches(4), hooks=hooks)


@pytest.mark.parametrize("declared", ["fetch", "follow"])
def test_a_prediction_says_that_named_tensors_are_not_among_its_outputs(make_estimator: Any, declared: str) -> None:
    class Wants(ec.Hook):
        def begin(self, run: Any) -> None:
            getattr(run, declared)("hidden")

    estimator = make_estimator(model()).train(batches(4), steps=2)
    with pytest.raises(ec.errors.HookError, match=r"no output 'hidden'.*A prediction has only its predictions\."):
        list(estimator.predict(batches(2), hooks=[Wants()]))
