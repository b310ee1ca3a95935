"""Bad input is refused with its cause and what to do, and model_dir stays byte for byte as it was."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import EstimatorError

numpy_input_fn = ec.inputs.numpy_input_fn
Spec = ec.EstimatorSpec
X = np.ones((8, 3), np.float32)
Y = np.zeros(8, np.float32)


def good_input() -> Any:
    return iter([({"x": X}, Y)] * 2)


class Awaits(ec.CheckpointListener):
    async def after_save(self, run: Any, step: int) -> None:  # type: ignore[override]
        pass


class Yields:
    name = "yields"

    def export(self, estimator: Any, export_path: str, *more: Any) -> Any:
        yield export_path


class ExportsForTooFew:
    name = "short"

    def export(self, estimator: Any, export_path: str) -> None:
        pass


class RehearsesForTooFew:
    name = "short"

    def export(self, *arguments: Any) -> None:
        pass

    def rehearse(self) -> None:
        pass


class EndsForTooFew(ec.CheckpointListener):
    def end(self, run: Any) -> None:  # type: ignore[override]
        pass


def weights(shape: tuple[int, ...] = (3,)) -> Any:
    return ec.get_variable("w", shape, jax.nn.initializers.zeros)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    y = features["x"] @ weights()
    if mode == "infer":
        return Spec(mode, predictions={"y": y})
    return Spec(mode, loss=jnp.mean((y - labels) ** 2), predictions={"y": y}, train_op=optax.sgd(0.1))


def returning(make_spec: Callable[[Any, Any, str], Any]) -> Callable[..., Any]:
    """A model_fn whose spec is made by a function of (y, loss, mode)."""

    def other_model_fn(features: Any, labels: Any, mode: str) -> Any:
        y = features["x"] @ weights()
        return make_spec(y, jnp.mean(y**2), mode)

    return other_model_fn


def trained_by(model: Callable[..., Any], **arguments: Any) -> Callable[[SimpleNamespace], Any]:
    return lambda at: at.estimator(model, **arguments).train(good_input, steps=1)


def of_input(elements: Any) -> Callable[[SimpleNamespace], Any]:
    return lambda at: at.estimator().train(lambda: elements, steps=3)


def sgd_spec(**changes: Any) -> Callable[..., Any]:
    return returning(lambda y, loss, mode: Spec(mode, **{"loss": loss, "train_op": optax.sgd(0.1), **changes}))


class Holder(ec.Hook):
    """A hook that keeps the values it receives."""

    def __init__(self, value: Any) -> None:
        self.value = value


CASES: dict[str, tuple[Callable[[SimpleNamespace], Any], str]] = {
    # the Estimator's arguments
    "no model_fn": (lambda at: ec.Estimator(None), "model_fn must be provided"),  # type: ignore[arg-type]
    "model_fn is no function": (lambda at: ec.Estimator(3), "must be a function"),  # type: ignore[arg-type]
    "model_fn without features": (lambda at: ec.Estimator(lambda labels, mode: None), "must include features argument"),
    "model_fn with an unknown argument": (
        lambda at: ec.Estimator(lambda features, foo: None),
        "not expected args: \\['foo'\\]",
    ),
    "model_fn hides its arguments": (lambda at: ec.Estimator(lambda **kwargs: None), "must name its arguments"),
    "params to a model_fn without": (lambda at: ec.Estimator(model_fn, params={}), "does not include params argument"),
    "config of another type": (
        lambda at: ec.Estimator(model_fn, config={"model_dir": "x"}),
        "must be an instance of `RunConfig`",
    ),  # type: ignore[arg-type]
    "two model_dirs": (
        lambda at: ec.Estimator(model_fn, model_dir="a", config=ec.RunConfig(model_dir="b")),
        "different values",
    ),
    "empty model_dir": (lambda at: ec.Estimator(model_fn, model_dir=""), "model_dir should be non-empty"),
    "model_dir of two lines": (
        lambda at: ec.Estimator(model_fn, model_dir="runs/a\nb"),
        r"model_dir has a line break or a control character, given: 'runs/a\\nb'\.",
    ),
    "model_dir with a line separator": (lambda at: ec.RunConfig("runs/a\u2028b"), r"a line break .*'runs/a\\u2028b'"),
    "EvalSpec name with a next line": (lambda at: ec.EvalSpec(good_input, name="a\x85b"), r"a line break .*'a\\x85b'"),
    "model_dir with a code of terminals": (lambda at: ec.RunConfig("runs/\x1b[31m"), "a control character, given"),
    "model_dir of another type": (lambda at: ec.Estimator(model_fn, model_dir=3), "model_dir must be a path"),  # type: ignore[arg-type]
    "warm_start_from of another type": (
        lambda at: ec.Estimator(model_fn, warm_start_from=3),
        "warm_start_from must be",
    ),  # type: ignore[arg-type]
    "a subclass overrides train": (
        lambda at: type("Mine", (ec.Estimator,), {"train": lambda self: None})(model_fn),
        "cannot override members",
    ),
    # RunConfig
    "unknown RunConfig argument": (
        lambda at: ec.RunConfig(save_checkpoint_steps=3),
        "Did you mean 'save_checkpoints_steps'",
    ),  # type: ignore[call-arg]
    "a removed RunConfig argument": (lambda at: ec.RunConfig(session_config={}), "no longer takes"),  # type: ignore[call-arg]
    "both checkpoint cadences": (
        lambda at: ec.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1),
        "cannot be both set",
    ),
    "seed no integer": (lambda at: ec.RunConfig(tf_random_seed=1.5), "must be integer"),  # type: ignore[arg-type]
    "seed negative": (lambda at: ec.RunConfig(tf_random_seed=-1), "must lie in"),
    "negative summary steps": (lambda at: ec.RunConfig(save_summary_steps=-1), "save_summary_steps should be"),
    "zero checkpoint steps": (lambda at: ec.RunConfig(save_checkpoints_steps=0), "save_checkpoints_steps should be"),
    "zero checkpoint seconds": (lambda at: ec.RunConfig(save_checkpoints_secs=0), "save_checkpoints_secs should be"),
    "negative keep_checkpoint_max": (lambda at: ec.RunConfig(keep_checkpoint_max=-1), "keep_checkpoint_max should be"),
    "a metric alone to keep by": (
        lambda at: ec.RunConfig(keep_checkpoint_best="auc"),
        'keep_checkpoint_best should be None or ec.KeepBest\\(metric=..., mode="max"\\)',
    ),
    "zero hours": (lambda at: ec.RunConfig(keep_checkpoint_every_n_hours=0), "keep_checkpoint_every_n_hours should be"),
    "zero log steps": (lambda at: ec.RunConfig(log_step_count_steps=0), "log_step_count_steps should be"),
    "backend no name": (lambda at: ec.RunConfig(backend=3), "backend should be a name"),  # type: ignore[arg-type]
    "mesh no dict": (lambda at: ec.RunConfig(mesh=4), "mesh should map"),  # type: ignore[arg-type]
    "mesh with two rests": (lambda at: ec.RunConfig(mesh={"data": -1, "model": -1}), "-1 at most once"),
    "partition rule no pair": (lambda at: ec.RunConfig(partition_rules=["w"]), "pairs"),  # type: ignore[list-item]
    "unknown precision": (lambda at: ec.RunConfig(precision="float8"), "precision should be"),  # type: ignore[arg-type]
    "zero accumulate_steps": (lambda at: ec.RunConfig(accumulate_steps=0), "accumulate_steps should be"),
    "steps_per_dispatch a word": (lambda at: ec.RunConfig(steps_per_dispatch="many"), 'should be "auto" or an int'),  # type: ignore[arg-type]
    "negative prefetch": (lambda at: ec.RunConfig(prefetch=-1), 'prefetch should be "auto" or an int'),
    "unknown eval_loss": (lambda at: ec.RunConfig(eval_loss="sum"), "eval_loss should be"),  # type: ignore[arg-type]
    "debug no bool": (lambda at: ec.RunConfig(debug=1), "debug should be True or False"),  # type: ignore[arg-type]
    "allow_untrained no bool": (
        lambda at: ec.RunConfig(allow_untrained="yes"),
        "allow_untrained should be True or False",
    ),  # type: ignore[arg-type]
    "compile_cache True": (lambda at: ec.RunConfig(compile_cache=True), "compile_cache should be a directory"),
    "grace_secs zero": (lambda at: ec.RunConfig(grace_secs=0), "grace_secs should be"),
    "default_hooks a number": (lambda at: ec.RunConfig(default_hooks=2), "default_hooks should be"),  # type: ignore[arg-type]
    "default_hooks a string": (lambda at: ec.RunConfig(default_hooks="progress"), "default_hooks should be"),
    "replace an unknown field": (lambda at: ec.RunConfig().replace(foo=1), "Replacing foo is not supported"),
    # TrainSpec, EvalSpec, train_and_evaluate
    "TrainSpec input_fn": (lambda at: ec.TrainSpec(X), "`input_fn` must be callable"),  # type: ignore[arg-type]
    "TrainSpec max_steps": (lambda at: ec.TrainSpec(good_input, max_steps=0), "max_steps > 0"),
    "TrainSpec hooks": (lambda at: ec.TrainSpec(good_input, hooks=["a"]), "hooks must be ec.Hook"),
    "EvalSpec steps": (lambda at: ec.EvalSpec(good_input, steps=-1), "steps > 0"),
    "EvalSpec name": (lambda at: ec.EvalSpec(good_input, name=1), "`name` must be string"),  # type: ignore[arg-type]
    "EvalSpec name with a slash": (lambda at: ec.EvalSpec(good_input, name="a/b"), "without '/'"),
    "EvalSpec name of two lines": (lambda at: ec.EvalSpec(good_input, name="a\nb"), r"^`name` has a line break or"),
    "exporter name of two lines": (
        lambda at: ec.EvalSpec(good_input, exporters=SimpleNamespace(name="a\nb", export=print)),
        "^The name of an Exporter has a line break or",
    ),
    "EvalSpec throttle": (lambda at: ec.EvalSpec(good_input, throttle_secs=-1), "throttle_secs >= 0"),
    "EvalSpec start delay": (lambda at: ec.EvalSpec(good_input, start_delay_secs=-1), "start_delay_secs >= 0"),
    "EvalSpec exporters": (lambda at: ec.EvalSpec(good_input, exporters=3), "must be an Exporter"),
    "EvalSpec exporters that yield": (
        lambda at: ec.EvalSpec(good_input, exporters=[Yields()]),
        "`exporters`: .*Yields object.*: `export` has `yield`, so calling it runs nothing",
    ),
    "an exporter with other arguments": (
        lambda at: ec.train_and_evaluate(
            at.estimator(), at.train, ec.EvalSpec(good_input, exporters=ExportsForTooFew())
        ),
        r"^exporter ExportsForTooFew .*: `export\(estimator: .*` is called as `export\(estimator, "
        r"export_path, checkpoint_path, eval_result, is_the_final_export\)`.*Give it these arguments",
    ),
    "an exporter whose rehearsal has other arguments": (
        lambda at: ec.train_and_evaluate(
            at.estimator(), at.train, ec.EvalSpec(good_input, exporters=RehearsesForTooFew())
        ),
        r"^exporter RehearsesForTooFew .*: `rehearse\(\) .*` is called as `rehearse\(check\)`",
    ),
    "train_and_evaluate estimator": (
        lambda at: ec.train_and_evaluate("e", at.train, at.eval),
        "must have type `ec.Estimator`",
    ),  # type: ignore[arg-type]
    "train_and_evaluate train_spec": (
        lambda at: ec.train_and_evaluate(at.estimator(), at.eval, at.eval),
        "must have type `ec.TrainSpec`",
    ),
    "train_and_evaluate eval_spec": (
        lambda at: ec.train_and_evaluate(at.estimator(), at.train, 3),
        "must have type `ec.EvalSpec`",
    ),  # type: ignore[arg-type]
    "two EvalSpecs of one name": (
        lambda at: ec.train_and_evaluate(at.estimator(), at.train, [at.eval, at.eval]),
        "different names",
    ),
    "train_and_evaluate without checkpoints": (
        lambda at: ec.train_and_evaluate(at.estimator(save_checkpoints_steps=None), at.train, at.eval),
        "Please set one of",
    ),
    # train
    "both steps and max_steps": (
        lambda at: at.estimator().train(good_input, steps=1, max_steps=9),
        "Can not provide both",
    ),
    "steps zero": (lambda at: at.estimator().train(good_input, steps=0), "Must specify steps > 0"),
    "steps a float": (lambda at: at.estimator().train(good_input, steps=1.5), "must be an int"),
    "input_fn an array": (lambda at: at.estimator().train(X), "must be callable"),
    "hooks a class": (lambda at: at.estimator().train(good_input, hooks=[ec.Hook], steps=1), "given the class Hook"),
    "hooks no list": (lambda at: at.estimator().train(good_input, hooks="h", steps=1), "must be a list"),
    "listeners": (
        lambda at: at.estimator().train(good_input, saving_listeners=["l"], steps=1),
        "must be a list of ec.CheckpointListener",
    ),
    "listeners that are async": (
        lambda at: at.estimator().train(good_input, saving_listeners=[Awaits()], steps=1),
        ".*Awaits object.*: `after_save` has `async`, so calling it runs nothing",
    ),
    "listeners with other arguments": (
        lambda at: at.estimator().train(good_input, saving_listeners=[EndsForTooFew()], max_steps=9),
        r"^checkpoint listener EndsForTooFew .*: `end\(run: .*` is called as `end\(run, step\)`.*Give it these",
    ),
    "listeners without checkpoints": (
        lambda at: at.estimator(save_checkpoints_steps=None).train(
            good_input, saving_listeners=[ec.CheckpointListener()], steps=1
        ),
        "There should be a CheckpointSaverHook",
    ),
    # evaluate and predict
    "evaluate steps": (lambda at: at.estimator().evaluate(good_input, steps=0), "Must specify steps > 0"),
    "evaluate an empty input": (lambda at: at.estimator().evaluate(lambda: iter([])), "the input is empty"),
    "evaluate an endless input": (
        lambda at: at.estimator().evaluate(numpy_input_fn({"x": X}, Y, batch_size=4, num_epochs=None, shuffle=False)),
        "never ends",
    ),
    "evaluate without a model": (lambda at: at.untrained().evaluate(good_input), "Could not find trained model"),
    "evaluate a missing checkpoint": (
        lambda at: at.estimator().evaluate(good_input, checkpoint_path="no/such/path"),
        "no checkpoint",
    ),
    "evaluate name of two lines": (lambda at: at.estimator().evaluate(good_input, name="a\0"), r"a control character"),
    "evaluate name": (lambda at: at.estimator().evaluate(good_input, name="a/b"), "without '/'"),
    "the step as a variable": (lambda at: at.estimator().get_variable_value("global_step"), "latest_checkpoint"),
    "predict without a model": (lambda at: next(at.untrained().predict(good_input)), "Could not find trained model"),
    "predict an unknown key": (lambda at: next(at.estimator().predict(good_input, predict_keys=["zz"])), "'zz'"),
    "predict keys a string": (lambda at: at.estimator().predict(good_input, predict_keys="y"), "must be a list"),
    "an unknown variable": (lambda at: at.estimator().get_variable_value("v"), "There is no variable 'v'"),
    "export without a receiver": (
        lambda at: at.estimator().export_saved_model("out", None),
        "An input_receiver_fn must be defined",
    ),
    "export of an unknown mode": (
        lambda at: at.estimator().export_saved_model("out", lambda: None, experimental_mode="serve"),
        "one of ModeKeys",
    ),
    # what model_fn returns
    "no EstimatorSpec": (trained_by(returning(lambda y, loss, mode: loss)), "should return an EstimatorSpec"),
    "another mode": (trained_by(returning(lambda y, loss, mode: Spec("infer", predictions=y))), "Pass on the `mode`"),
    "unknown mode": (trained_by(returning(lambda y, loss, mode: Spec("serve", predictions=y))), "one of ModeKeys"),
    "missing train_op": (trained_by(returning(lambda y, loss, mode: Spec(mode, loss=loss))), "Missing train_op"),
    "missing loss": (trained_by(returning(lambda y, loss, mode: Spec(mode, train_op=optax.sgd(1)))), "Missing loss"),
    "missing predictions": (
        lambda at: next(at.estimator(returning(lambda y, loss, mode: Spec(mode, loss=loss))).predict(good_input)),
        "Missing predictions",
    ),
    "loss a vector": (
        trained_by(returning(lambda y, loss, mode: Spec(mode, loss=y, train_op=optax.sgd(1)))),
        "Loss must be scalar",
    ),
    "loss an integer": (
        trained_by(returning(lambda y, loss, mode: Spec(mode, loss=jnp.int32(1), train_op=optax.sgd(1)))),
        "floating point",
    ),
    "loss a string": (trained_by(sgd_spec(loss="low")), "loss must be an array"),
    "train_op a string": (trained_by(sgd_spec(train_op="adam")), "train_op must be"),
    "train_op an optimizer function": (trained_by(sgd_spec(train_op=optax.sgd)), "optimizer|train_op"),
    "metrics a list": (trained_by(sgd_spec(eval_metric_ops=[1])), "eval_metric_ops must be a dict"),
    "metric an array": (trained_by(sgd_spec(eval_metric_ops={"a": X})), "must be streaming metrics"),
    "metric named loss": (
        trained_by(
            returning(
                lambda y, loss, mode: Spec(
                    mode, loss=loss, train_op=optax.sgd(1), eval_metric_ops={"loss": ec.metrics.mean(y)}
                )
            )
        ),
        '"loss" is not allowed',
    ),
    "hooks in the spec": (trained_by(sgd_spec(training_hooks=["h"])), "must be ec.Hook"),
    "scaffold": (trained_by(sgd_spec(scaffold="s")), "must be an ec.Scaffold"),
    "predictions a dict of strings": (trained_by(sgd_spec(predictions={"a": "b"})), "must be an array"),
    "predictions a list of arrays": (trained_by(sgd_spec(predictions=[X, X])), r"predictions\['predictions'\] must be"),
    "a hook that keeps a tracer": (
        trained_by(
            returning(lambda y, loss, mode: Spec(mode, loss=loss, train_op=optax.sgd(1), training_hooks=[Holder(loss)]))
        ),
        "keeps a traced array",
    ),
    "learning rate from the model": (
        trained_by(
            returning(
                lambda y, loss, mode: Spec(
                    mode, loss=loss, train_op=optax.inject_hyperparams(optax.sgd)(learning_rate=loss * 0.1)
                )
            )
        ),
        "depends on an array computed inside model_fn",
    ),
    "minimize matches nothing": (
        trained_by(
            returning(
                lambda y, loss, mode: Spec(mode, loss=loss, train_op=ec.minimize(loss, optax.sgd(1), variables="v"))
            )
        ),
        "no trainable variable matches",
    ),
    "two members change one variable": (
        trained_by(
            returning(
                lambda y, loss, mode: Spec(
                    mode, loss=loss, train_op=ec.group(ec.minimize(loss, optax.sgd(1)), ec.minimize(loss, optax.sgd(1)))
                )
            )
        ),
        "changed by two members",
    ),
    "nothing to train": (
        trained_by(lambda features, labels, mode: Spec(mode, loss=jnp.mean(features["x"]), train_op=optax.sgd(1))),
        "nothing to train",
    ),
    "another shape than the checkpoint": (
        trained_by(
            lambda features, labels, mode: Spec(
                mode, loss=jnp.mean(features["x"] @ weights((3, 5))), train_op=optax.sgd(0.1)
            )
        ),
        "does not fit this model",
    ),
    "another optimizer than the checkpoint": (
        trained_by(sgd_spec(train_op=optax.adam(0.1))),
        "does not fit this model",
    ),
    # what input_fn returns
    "labels to a model without": (trained_by(lambda features, mode: None), "does not take labels"),
    "a list of length 3": (of_input(iter([[X, Y, Y]])), "input_fn|tuple"),
    "bare arrays": (of_input((X, Y)), "numpy_input_fn"),
    "another structure": (of_input(iter([({"x": X}, Y), ({"x": X, "z": X}, Y)])), "z"),
    "another trailing shape": (of_input(iter([({"x": X}, Y), ({"x": X[:, :2]}, Y)])), "'?x'?"),
    "another dtype": (of_input(iter([({"x": X}, Y), ({"x": X.astype(np.int32)}, Y)])), "'?x'?"),
    "out of int32 range": (of_input(iter([({"x": np.full((8, 3), 2**40)}, Y)])), "'?x'?"),
    "input_fn takes an unknown argument": (lambda at: at.estimator().train(lambda foo: None, steps=1), "foo"),
}


def fingerprint(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "dir"
        for path in sorted(directory.rglob("*"))
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("refusals") / "model"
    ec.Estimator(
        model_fn, config=ec.RunConfig(model_dir=str(directory), save_checkpoints_steps=5, default_hooks=False)
    ).train(good_input, steps=2)
    return directory


#: The package that makes exports reports bad arguments of an export.
OF_EXPORTS = ("export without a receiver", "export of an unknown mode")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.plugins] if name in OF_EXPORTS else []) for name in CASES]
)
def test_refused_with_cause_and_nothing_written(
    name: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"save_checkpoints_steps": 5, "default_hooks": False}

    def estimator(model: Callable[..., Any] = model_fn, **changes: Any) -> ec.Estimator:
        return ec.Estimator(model, config=ec.RunConfig(model_dir=str(trained), **{**settings, **changes}))

    at = SimpleNamespace(
        estimator=estimator,
        untrained=lambda: ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path / "new"), **settings)),
        train=ec.TrainSpec(good_input, max_steps=9),
        eval=ec.EvalSpec(good_input),
    )
    before = fingerprint(trained)
    act, message = CASES[name]
    with pytest.raises(EstimatorError, match=message):
        act(at)
    after = fingerprint(trained)
    if name.startswith("another ") and ("structure" in name or "dtype" in name or "trailing" in name):
        # a later batch: the steps before it count, and the results of the previous run are unchanged
        assert {path: after[path] for path in before if path.startswith("checkpoints/2")} == {
            path: value for path, value in before.items() if path.startswith("checkpoints/2")
        }
    else:
        assert after == before


def test_there_are_at_least_sixty() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize(
    ("element", "error", "note"),
    [
        (
            ({"x": X.astype(object)}, Y),
            KeyError,
            r"If 'x' is a feature: model_fn gets the features \[\]\. Arrays of text, dates or",
        ),
        (({"x": X}, Y.astype(object)), TypeError, "The labels that model_fn gets are None. Arrays of text, dates or"),
    ],
)
def test_an_error_says_which_arrays_stay_on_the_host(tmp_path: Path, element: Any, error: Any, note: str) -> None:
    with pytest.raises(error) as raised:
        ec.Estimator(model_fn, model_dir=str(tmp_path)).train(lambda: iter([element]))
    told, *_ = raised.value.__notes__
    assert re.match(note, told)


@pytest.mark.parametrize(
    ("loss_of", "error"),
    [
        (lambda logits, labels: optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), TypeError),
        (lambda logits, labels: jnp.mean((logits[:, 0] - labels.astype(jnp.float32)) ** 2), AttributeError),
        (lambda logits, labels: jnp.mean(logits[:, 0] - jnp.asarray(labels)), ValueError),
        (lambda logits, labels: jnp.mean(logits[:, 0] - np.asarray(labels)), TypeError),
    ],
)
def test_an_error_of_a_library_says_that_text_labels_are_none(tmp_path: Path, loss_of: Any, error: Any) -> None:
    def of_classes(features: Any, labels: Any, mode: str) -> Any:
        logits = features["x"] @ ec.get_variable("weights", (X.shape[1], 2))
        return Spec(mode, loss=loss_of(logits, labels), train_op=optax.sgd(0.1))

    words = np.array(["Adelie"] * len(X))
    with pytest.raises(error) as raised:
        ec.Estimator(of_classes, model_dir=str(tmp_path)).train(lambda: iter([({"x": X}, words)]))
    told, *_ = raised.value.__notes__
    assert told.startswith("The labels that model_fn gets are None. Arrays of text")
    assert told.endswith("words with np.unique.")


def test_a_loss_in_mode_predict_is_told_that_there_are_no_labels(tmp_path: Path) -> None:
    def model_with_loss(features: Any, labels: Any, mode: str) -> Any:
        y = features["x"] @ ec.get_variable("w", (X.shape[1],))
        return Spec(mode, predictions=y, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))

    estimator = ec.Estimator(model_with_loss, model_dir=str(tmp_path)).train(lambda: iter([({"x": X}, Y)]))
    with pytest.raises(TypeError) as raised:
        next(estimator.predict(lambda: iter([{"x": X}])))
    told, *_ = raised.value.__notes__
    assert told == (
        "In mode 'infer' (ModeKeys.PREDICT) the labels are always None. If the error comes from them: return the "
        "predictions of this mode before the labels are used."
    )


def test_a_missing_hyperparameter_is_told_which_there_are(tmp_path: Path) -> None:
    def model_of_params(features: Any, labels: Any, mode: str, params: Any) -> Any:
        loss = jnp.mean(features["x"] @ ec.get_variable("w", (X.shape[1],)))
        return Spec(mode, loss=loss, train_op=optax.sgd(params["rate"]))

    with pytest.raises(KeyError) as raised:
        ec.Estimator(model_of_params, model_dir=str(tmp_path), params={"units": 3}).train(lambda: iter([{"x": X}]))
    assert "If 'rate' is a hyperparameter: params has ['units']." in raised.value.__notes__


@pytest.mark.parametrize(
    ("loss_of", "error"),
    [
        (lambda logits: jnp.mean(jnp.no_such_function(logits)), AttributeError),  # type: ignore[attr-defined]
        (lambda logits: jnp.mean(logits, axes=1), TypeError),  # type: ignore[call-arg]
        (lambda logits: jnp.mean(logits @ jnp.ones((5, 2))), TypeError),
    ],
)
def test_an_error_of_a_model_without_labels_does_not_suspect_them(tmp_path: Path, loss_of: Any, error: Any) -> None:
    def of_clusters(features: Any, labels: Any, mode: str) -> Any:
        return Spec(mode, loss=loss_of(features["x"] @ ec.get_variable("w", (X.shape[1], 2))), train_op=optax.sgd(0.1))

    with pytest.raises(error) as raised:
        ec.Estimator(of_clusters, model_dir=str(tmp_path)).train(lambda: iter([{"x": X}]))
    assert not any("labels" in note for note in raised.value.__notes__)


def test_an_error_of_another_cause_has_no_such_note(tmp_path: Path) -> None:
    def of_text(features: Any, mode: str) -> Any:
        return Spec(mode, predictions={"y": features["x"] + "one"})

    with pytest.raises(TypeError) as raised:
        ec.Estimator(of_text, model_dir=str(tmp_path)).train(lambda: iter([{"x": X}]))
    assert not any("stay on the host" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("below", ["", "run"])
def test_a_file_in_the_place_of_model_dir_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").write_text("kept")
    with pytest.raises(EstimatorError, match=r"^model_dir .*taken.* cannot be used as a directory: "):
        ec.Estimator(model_fn, model_dir=str(tmp_path / "taken" / below)).train(good_input)
    assert (tmp_path / "taken").read_text() == "kept"


def test_an_empty_dict_of_predictions_is_refused(tmp_path: Path) -> None:
    def without(features: Any, mode: str) -> Any:
        y = features["x"] @ weights()
        return Spec(mode, predictions={}, loss=jnp.mean(y), train_op=optax.sgd(0.1))

    estimator = ec.Estimator(without, model_dir=str(tmp_path)).train(lambda: iter([{"x": X}]))
    with pytest.raises(EstimatorError, match=r"^Missing predictions\. .* Name one: predictions={'y': y}\.$"):
        next(estimator.predict(lambda: iter([{"x": X}])))
