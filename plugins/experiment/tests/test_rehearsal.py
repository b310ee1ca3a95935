"""Tests of the checks before step 1: inputs, modes and exports are checked, and nothing is written."""

from __future__ import annotations

import json
import queue
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, InputError, ModelFnError, PluginLookupError
from estimator_core.storage import StorageGoneError
from estimator_core.testing import array_format
from estimator_experiment.plugin import estimator_rehearse
from estimator_experiment.rehearsal import find_faults


class FromReceiver:
    """An exporter that only reports what it would write."""

    def __init__(self, name: str, receiver: Any, format: str = "arrays") -> None:
        self.name, self._receiver, self._format = name, receiver, format

    def rehearse(self, check: Callable[..., None]) -> None:
        check(self._receiver, format=self._format)

    def export(self, *arguments: Any, **named: Any) -> None:
        return None


def receiver(**features: Any) -> Any:
    return ec.export.build_raw_serving_input_receiver_fn(features)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] @ ec.get_variable("w", (3,))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y + features.get("shift", 0)})
    loss = jnp.mean((y - labels) ** 2)
    metrics = {"weighted": ec.metrics.mean(y, features["weight"])} if mode == ec.ModeKeys.EVAL else None
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1), eval_metric_ops=metrics)


def rows(width: int = 3, **others: Any) -> Callable[..., Any]:
    features = {"x": np.ones((16, width), np.float32), **others}
    return ec.inputs.numpy_input_fn(features, np.ones(16, np.float32), batch_size=4, shuffle=False, num_epochs=1)


WEIGHT = {"weight": np.ones(16, np.float32)}


@pytest.fixture
def estimator(tmp_path: Path) -> ec.Estimator:
    config = ec.RunConfig(
        model_dir=str(tmp_path / "model"), save_checkpoints_steps=2, default_hooks=["estimator-experiment"]
    )
    return ec.Estimator(model_fn, config=config, plugins=ec.Plugins(extra=[array_format]))


def test_every_fault_is_told_at_once_and_nothing_is_written(estimator: ec.Estimator) -> None:
    evaluations = [
        ec.EvalSpec(rows(), name="without_weights"),
        ec.EvalSpec(
            lambda: iter(()), name="empty", exporters=FromReceiver("narrow", receiver(x=np.ones(2, np.float32)))
        ),
        ec.EvalSpec(rows(**WEIGHT), exporters=FromReceiver("nowhere", receiver(x=np.ones(3, np.float32)), "no_such")),
    ]
    with pytest.raises(ArgumentError) as told:
        ec.train_and_evaluate(estimator, ec.TrainSpec(rows(**WEIGHT), max_steps=4), evaluations)
    lines = str(told.value).splitlines()
    assert lines[0] == "Nothing was started: 4 faults were found before the first step."
    assert (
        "1. model_fn in mode 'eval', with the input of the EvalSpec 'without_weights': KeyError: 'weight'" in lines[1]
    )
    assert "test_rehearsal.py" in lines[1]
    assert "The batch has features {x: float32[4, 3]} and labels float32[4]" in lines[1]
    assert "2. The input of the EvalSpec 'empty': it is empty" in lines[2]
    assert "3. The exporter 'narrow': " in lines[3]
    assert "4. The exporter 'nowhere': there is no format 'no_such'" in lines[4]
    assert not Path(estimator.model_dir).exists()
    assert estimator.trace_counts == {}


def test_a_single_fault_keeps_its_type_through_the_experiment_too(estimator: ec.Estimator) -> None:
    experiment = ec.Experiment(estimator, rows(**WEIGHT), lambda: iter(()), train_steps=4)
    with pytest.raises(InputError, match=r"^The input of the EvalSpec: it is empty\."):
        experiment.train_and_evaluate()
    assert not Path(estimator.model_dir).exists()
    endless = ec.inputs.numpy_input_fn({"x": np.ones((4, 3), np.float32)}, np.ones(4), shuffle=False, num_epochs=None)
    with pytest.raises(InputError, match="The input of the EvalSpec: it never ends"):
        ec.train_and_evaluate(estimator, ec.TrainSpec(rows(), max_steps=2), ec.EvalSpec(endless))


@pytest.mark.parametrize("name", ["ec.no_such_name", "no_such_name"])
def test_an_unknown_name_does_not_put_the_batch_under_suspicion(estimator: ec.Estimator, name: str) -> None:
    def misspelt(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        return eval(name)

    made = ec.Estimator(misspelt, config=estimator.config)
    faults = find_faults(made, ec.TrainSpec(rows(**WEIGHT)), [])
    assert "no_such_name" in str(faults[0])
    assert "The batch has" not in str(faults[0])


def test_a_variable_of_another_shape_in_evaluation_is_found(estimator: ec.Estimator) -> None:
    def other(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        ec.get_variable("by_width", features["x"].shape[1:])
        return model_fn(features, labels, mode)

    made = ec.Estimator(other, config=estimator.config)
    faults = find_faults(made, ec.TrainSpec(rows(**WEIGHT)), [ec.EvalSpec(rows(4, **WEIGHT))])
    assert [type(found).__name__ for found in faults] == ["VariableError"]
    assert "model_fn in mode 'eval', with the input of the EvalSpec: " in str(faults[0])


def test_a_run_is_tried_unless_that_is_switched_off(
    estimator: ec.Estimator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[str] = []

    def counted() -> Any:
        counts.append("train")
        return rows(**WEIGHT)

    train, held_out = ec.TrainSpec(counted, max_steps=2), ec.EvalSpec(rows(**WEIGHT))
    assert ec.train_and_evaluate(estimator, train, held_out)[0]["global_step"] == 2
    assert len(counts) == 2
    ec.train_and_evaluate(estimator, ec.TrainSpec(counted, max_steps=3), held_out)
    assert len(counts) == 3, "what was found sound is not tried again"
    monkeypatch.setenv("ESTIMATOR_OPTION_ESTIMATOR_EXPERIMENT_REHEARSE", "false")
    without = estimator.config.replace(model_dir=str(tmp_path / "without"))
    ec.train_and_evaluate(ec.Estimator(model_fn, config=without), train, held_out)
    assert len(counts) == 4


def test_an_error_of_other_code_stays_what_it_is_and_says_how_to_run_without(estimator: ec.Estimator) -> None:
    with pytest.raises(KeyError, match="weight") as told:
        ec.train_and_evaluate(estimator, ec.TrainSpec(rows(**WEIGHT), max_steps=4), ec.EvalSpec(rows()))
    notes = "\n".join(told.value.__notes__)
    assert "model_fn in mode 'eval', with the input of the EvalSpec: KeyError: 'weight'" in notes
    assert "ESTIMATOR_OPTION_ESTIMATOR_EXPERIMENT_REHEARSE=false" in notes
    assert not Path(estimator.model_dir).exists()


def batch_of(number: int) -> Any:
    return {"x": np.full((4, 3), number, np.float32), **{"weight": np.ones(4)}}, np.ones(4)


class Seen(ec.Hook):
    def __init__(self) -> None:
        self.first: list[float] = []

    def after_create(self, run: Any) -> None:
        self.first.append(float(run.batch.features["x"][0, 0]))


class Shared:
    """An input that always returns the same iterator."""

    def __init__(self, kept: Iterator[Any]) -> None:
        self.kept = kept

    def __iter__(self) -> Iterator[Any]:
        yield from self.kept


@pytest.mark.parametrize("form", ["the iterator", "a generator over it", "an object that has it", "a method"])
def test_an_iterator_that_the_input_has_not_made_loses_no_batch(
    form: str, estimator: ec.Estimator, caplog: pytest.LogCaptureFixture
) -> None:
    batches = map(batch_of, range(3))
    shared = Shared(batches)

    def generated() -> Iterator[Any]:
        yield from batches

    forms: dict[str, Callable[..., Any]] = {
        "the iterator": lambda: batches,
        "a generator over it": generated,
        "an object that has it": lambda: shared,
        "a method": shared.__iter__,
    }
    seen = Seen()
    with caplog.at_level("INFO", logger="estimator_core"):
        ec.train_and_evaluate(
            estimator, ec.TrainSpec(forms[form], max_steps=3, hooks=[seen]), ec.EvalSpec(rows(**WEIGHT))
        )
    assert seen.first == [0.0]
    assert "The training input is not tried: that would use up a map in '" in caplog.text


def test_an_input_that_training_feeds_is_not_waited_for(estimator: ec.Estimator) -> None:
    fed: queue.Queue[Any] = queue.Queue()

    def from_queue() -> Iterator[Any]:
        yield fed.get()

    class Feeds(ec.Hook):
        def after_create(self, run: Any) -> None:
            for _ in range(5):
                fed.put(batch_of(1))

    train = ec.TrainSpec(rows(**WEIGHT), max_steps=2, hooks=[Feeds()])
    assert ec.train_and_evaluate(estimator, train, ec.EvalSpec(from_queue))[0]["global_step"] == 2


def test_random_numbers_are_drawn_as_if_nothing_had_been_tried(estimator: ec.Estimator) -> None:
    own = np.random.default_rng(5)

    def drawn() -> Iterator[Any]:
        while True:
            x = np.full((4, 3), [[own.random() + np.random.random() + random.random()] * 3] * 4, np.float32)
            yield {"x": x, "weight": np.ones(4, np.float32)}, np.ones(4, np.float32)

    np.random.seed(3)
    random.seed(4)
    fresh, kept, theirs = np.random.default_rng(5), np.random.RandomState(3), random.Random(4)
    seen = Seen()
    ec.train_and_evaluate(estimator, ec.TrainSpec(drawn, max_steps=2, hooks=[seen]), ec.EvalSpec(rows(**WEIGHT)))
    assert seen.first == [np.float32(fresh.random() + kept.random_sample() + theirs.random())]


def test_a_fault_of_predictions_that_nobody_asks_for_is_a_warning(
    estimator: ec.Estimator, caplog: pytest.LogCaptureFixture
) -> None:
    def shifted(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=features["shift"])
        return model_fn(features, labels, mode)

    def none(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        return replace(model_fn(features, labels, mode), predictions=None)

    for given, warned in ((shifted, True), (none, False)):
        caplog.clear()
        made, train = ec.Estimator(given, config=estimator.config), ec.TrainSpec(rows(**WEIGHT))
        assert find_faults(made, train, [ec.EvalSpec(rows(**WEIGHT))]) == []
        assert ("will fail with features as in training: model_fn in mode 'infer'" in caplog.text) is warned


def test_a_chief_leaves_the_files_of_the_evaluator_alone(
    estimator: ec.Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere() -> Any:
        raise FileNotFoundError("eval.csv")

    cluster = {"chief": ["a:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
    chief = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=estimator.model_dir))
    assert find_faults(chief, ec.TrainSpec(rows()), [ec.EvalSpec(elsewhere)]) == []
    assert find_faults(chief, ec.TrainSpec(elsewhere), [ec.EvalSpec(rows())]) != []


def test_hooks_that_make_an_input_ready_are_asked_only_where_it_needs_them(estimator: ec.Estimator) -> None:
    class Load(ec.Hook):
        def __init__(self, into: dict[str, Any]) -> None:
            self.into, self.begun = into, 0

        def begin(self, run: Any) -> None:
            self.begun += 1
            self.into["x"] = np.ones((4, 3), np.float32)

    arrays: dict[str, Any] = {}

    def late() -> Iterator[Any]:
        yield {"x": arrays["x"]}, np.ones(4, np.float32)

    needed, not_needed = Load(arrays), Load({})
    assert find_faults(estimator, ec.TrainSpec(late, hooks=[needed]), []) == []
    assert find_faults(estimator, ec.TrainSpec(rows(), hooks=[not_needed]), []) == []
    assert (needed.begun, not_needed.begun) == (1, 0)


def test_prediction_is_tried_where_the_program_predicts(estimator: ec.Estimator) -> None:
    def no_prediction(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        return replace(model_fn(features, labels, mode), predictions=None)

    made, train = ec.Estimator(no_prediction, config=estimator.config), ec.TrainSpec(rows(**WEIGHT))
    assert find_faults(made, train, []) == []
    (found,) = find_faults(made, train, [], predicts=True)
    assert isinstance(found, ModelFnError)
    assert str(found).startswith("model_fn in mode 'infer': ")


PROGRAM = """
import estimator_core as ec, jax.numpy as jnp, numpy as np, optax


def model_fn(features, labels, mode):
    y = features["x"] * ec.get_variable("slope", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y + features["offset"]})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))


def experiment_fn(run_config, hparams):
    x = np.ones(8, np.float32)
    train = ec.inputs.numpy_input_fn({"x": x}, x, batch_size=4, shuffle=False, num_epochs=None)
    return ec.Experiment(ec.Estimator(model_fn, config=run_config), train, lambda: iter(()), train_steps=3)
"""


def test_a_dry_run_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)
    assert main(["run", "program.py", "--dry-run"]) == 1
    output = capsys.readouterr().out
    assert "1. The input of the EvalSpec: it is empty." in output
    assert "2. model_fn in mode 'infer': KeyError: 'offset'" in output
    assert "2 faults; nothing was trained." in output
    assert not Path("runs").exists()


class AsItIs:
    """A host transform. With it, training records the shapes of the features."""

    name, version = "as_it_is", 1
    files: Mapping[str, Path] = MappingProxyType({})

    def config(self) -> dict[str, Any]:
        return {}

    def apply(self, batch: Any) -> Any:
        return batch


class Fitted(ec.export.ServingInputReceiver):
    """A receiver with as many places as training saw values, like the receiver of tf.Examples."""

    def fitted(self, places: Any) -> ec.export.ServingInputReceiver:
        return ec.export.ServingInputReceiver({"x": np.ones((1, places.get("x", 1)), np.float32)})


def test_a_receiver_fits_what_the_training_input_has(estimator: ec.Estimator) -> None:
    places = ec.Estimator(
        model_fn, config=estimator.config, host_transforms=[AsItIs()], plugins=ec.Plugins(extra=[array_format])
    )
    exporter = FromReceiver("any number", lambda: Fitted({"x": np.ones((1, 1), np.float32)}))
    evaluation = ec.EvalSpec(rows(**WEIGHT), exporters=exporter)
    assert find_faults(places, ec.TrainSpec(rows(**WEIGHT)), [evaluation]) == []
    assert find_faults(estimator, ec.TrainSpec(rows(**WEIGHT)), [evaluation]) != []  # a run records no shapes
    assert not Path(estimator.model_dir).exists()


def test_a_backend_that_is_not_installed_is_left_to_the_run(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    wrong = ec.Estimator(model_fn, tmp_path / "run", ec.RunConfig(backend="gppu"))
    with pytest.raises(PluginLookupError, match="there is no backend 'gppu'"), caplog.at_level("INFO"):
        ec.train_and_evaluate(wrong, ec.TrainSpec(rows(**WEIGHT), max_steps=1), ec.EvalSpec(rows(**WEIGHT)))
    assert "not tried before step 1: there is no backend 'gppu'" in caplog.text
    assert "Traceback" not in caplog.text
    assert "estimator_rehearse of" not in caplog.text


def test_a_store_that_is_gone_is_left_to_the_run(
    estimator: ec.Estimator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing bucket once raised a traceback from this plugin, and then the error of the run.

    A dry run has only the first.
    """

    def gone(estimator: ec.Estimator) -> Any:
        raise StorageGoneError("s3://bucket/run: the bucket or container does not exist.")

    monkeypatch.setattr("estimator_experiment.rehearsal.rehearsal", gone)
    with caplog.at_level("INFO", "estimator_core"):
        assert estimator_rehearse(estimator, ec.TrainSpec(rows()), [], {"rehearse": True}) == []
    assert "Inputs, modes and exports are not tried before step 1: s3://bucket/run: the bucket" in caplog.text
    with pytest.raises(StorageGoneError, match="the bucket or container does not exist"):
        find_faults(estimator, ec.TrainSpec(rows()), [])
