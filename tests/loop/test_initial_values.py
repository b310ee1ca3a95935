"""Tests of initial values from other sources in real runs: where they come from and when they stop to apply (traps 15
and 32).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._loop.initial_values import replaced_values
from estimator_core._model.initial_requests import declared_variables, request_initial_values
from estimator_core._model.initial_values import InitialValue
from estimator_core._model.initialize import seed_words, variable_key
from estimator_core._model.variables import VariableSpec, make_spec
from estimator_core.errors import ModelFnError, PluginLookupError, VariableError

X = np.ones((4, 2), np.float32)
NORMAL = jax.nn.initializers.normal()
SPECS = {path: make_spec(path, (2,)) for path in ("a", "b", "c")}


class Constant:
    """Sets the named variables to one number, and counts its calls."""

    def __init__(self, number: float, *paths: str) -> None:
        self.number, self.paths, self.asked = number, paths, 0

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> dict[str, InitialValue]:
        self.asked += 1
        return {
            path: InitialValue(
                value=np.full(specs[path].shape, self.number, np.float16), origin=f"the constant {self.number}"
            )
            for path in self.paths
        }


def batches() -> Any:
    return iter([({"x": X}, X[:, 0])] * 3)


class FirstValues(ec.Hook):
    """Records the variables before the first step."""

    def after_create(self, run: Any) -> None:
        self.found = {name: value.tolist() for name, value in run.variables().items()}


def model(source: Any = None, scaffold: Any = None) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (2,), NORMAL) + ec.get_variable("b", (), NORMAL)
        if source is not None:
            request_initial_values(source)
        loss = jnp.mean((y - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0), scaffold=scaffold)

    return model_fn


def estimator(path: Path, model_fn: Any, **arguments: Any) -> ec.Estimator:
    config = ec.RunConfig(model_dir=str(path), tf_random_seed=1, save_checkpoints_steps=10, default_hooks=False)
    return ec.Estimator(model_fn, config=config, **arguments)


def first_values(trained: ec.Estimator) -> dict[str, Any]:
    hook = FirstValues()
    trained.train(batches, hooks=[hook], steps=1)
    return hook.found


def test_each_source_wins_over_the_one_before_and_a_checkpoint_over_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warm, asked = Constant(2.0, "w", "b"), Constant(3.0, "b")
    plain = first_values(estimator(tmp_path / "plain", model()))
    assert first_values(estimator(tmp_path / "warm", model(), warm_start_from=warm)) == {"w": [2.0, 2.0], "b": 2.0}
    assert plain["b"] != 2.0
    both = estimator(tmp_path / "both", model(asked), warm_start_from=warm)
    assert first_values(both) == {"w": [2.0, 2.0], "b": 3.0}

    def init_fn(values: dict[str, Any]) -> dict[str, Any]:
        assert values["b"].tolist() == 3.0
        return {"b": np.float32(5.0)}

    all_of_them = model(asked, ec.Scaffold(init_fn=init_fn))
    caplog.set_level("INFO", logger="estimator_core")
    trained = estimator(tmp_path / "all", all_of_them, warm_start_from=warm)
    assert first_values(trained) == {"w": [2.0, 2.0], "b": 5.0}
    assert "from elsewhere:\n  w: the constant 2.0\n  b: Scaffold(init_fn=...)" in caplog.text
    times = warm.asked, asked.asked
    resumed = estimator(tmp_path / "warm", all_of_them, warm_start_from=warm)
    assert first_values(resumed) == {"w": [2.0, 2.0], "b": 2.0}  # nothing is initialised if a checkpoint exists
    assert (warm.asked, asked.asked) == times == (3, 2)


def test_later_sources_win() -> None:
    seen: dict[str, Any] = {}

    def init_fn(values: dict[str, Any]) -> dict[str, Any]:
        seen.update(values)
        return {"b": values["b"] + 100}

    fresh = {path: np.zeros(2, np.float32) for path in SPECS}
    sources = [Constant(1.0, "a", "b"), Constant(2.0, "b")]
    replaced = replaced_values(fresh, SPECS, seed=0, sources=sources, init_fn=init_fn)
    assert {path: (one.value.tolist(), one.origin) for path, one in replaced.items()} == {
        "a": ([1, 1], "the constant 1.0"),
        "b": ([102, 102], "Scaffold(init_fn=...)"),
    }
    assert all(one.value.dtype == np.float32 for one in replaced.values())
    assert set(seen) == set(SPECS)
    seen["a"][:] = -1
    assert replaced["a"].value.min() == 1


def test_a_source_has_the_random_key_of_each_path() -> None:
    keys: dict[str, Any] = {}

    class Random:
        def initial_values(self, specs: Any, key: Any) -> dict[str, InitialValue]:
            keys.update({path: key(path) for path in specs})
            return {}

    assert replaced_values({}, SPECS, seed=7, sources=[Random()]) == {}
    for path in SPECS:
        assert keys[path] == variable_key(np.array(seed_words(7), np.uint32), path)
    assert keys["a"] != keys["b"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned NoneType"),
        ({"bb": np.zeros(2)}, "'bb', which is not a variable. Did you mean 'b'. Variables: a, b, c"),
        ({"b": np.zeros(3)}, r"Shape of variable 'b' \(\[2\]\).*the value \(\[3\]\) that Scaffold"),
        ({"b": np.zeros(2, np.int32)}, "numbers of another kind are not converted"),
    ],
)
def test_an_init_fn_that_returns_something_else(returned: Any, message: str) -> None:
    fresh = {path: np.zeros(2, np.float32) for path in SPECS}
    with pytest.raises(VariableError, match=message):
        replaced_values(fresh, SPECS, seed=0, init_fn=lambda values: returned)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"kernle": np.zeros(2)},
            "Given returned a value for 'kernle', which is not a variable. Did you mean 'kernel'",
        ),
        ({"kernel": np.zeros(3)}, r"Shape of variable 'kernel' \(\[2\]\).*the value \(\[3\]\) that Given returned"),
        ({"kernel": np.zeros(2, bool)}, "numbers of another kind are not converted"),
    ],
)
def test_a_source_that_gives_something_else(given: Mapping[str, np.ndarray], message: str) -> None:
    class Given:
        def initial_values(self, specs: Any, key: Any) -> dict[str, InitialValue]:
            return {path: InitialValue(value=value, origin="here") for path, value in given.items()}

    with pytest.raises(VariableError, match=message):
        replaced_values({}, {"kernel": make_spec("kernel", (2,))}, seed=0, sources=[Given()])


def test_what_was_declared_so_far_and_whether_it_is_fresh(tmp_path: Path) -> None:
    seen: list[tuple[list[str], bool]] = []

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        w = ec.get_variable("w", (2,))
        declared = declared_variables()
        seen.append((list(declared.variables), declared.fresh))
        y = features["x"] @ w + ec.get_variable("late", ())
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.0))

    estimator(tmp_path / "a", model_fn).train(batches, steps=1)
    assert seen[0] == (["w"], True)
    assert set(map(str, seen[1:])) == {str((["w"], False))}  # the compiled step has its values
    del seen[:]
    estimator(tmp_path / "a", model_fn).train(batches, steps=1)
    assert not any(fresh for _, fresh in seen)  # the checkpoint has them


def test_outside_of_model_fn() -> None:
    with pytest.raises(ModelFnError, match=r"model\.request_initial_values was called outside of model_fn"):
        request_initial_values(Constant(1.0))
    with pytest.raises(ModelFnError, match="acme was called outside of model_fn"):
        declared_variables("acme")


def test_initial_values_from_elsewhere_are_enough_for_an_evaluation(tmp_path: Path) -> None:
    warmed = estimator(tmp_path / "warm", model(), warm_start_from=Constant(2.0, "w"))
    assert warmed.evaluate(batches)["global_step"] == 0


def test_a_path_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distributions", lambda **given: iter(()))
    for path in ("runs/old", tmp_path):
        with pytest.raises(
            PluginLookupError, match="there is no initial_values 'estimator-warm-start:warm_start'"
        ) as refused:
            estimator(tmp_path / "a", model(), warm_start_from=path, plugins=ec.Plugins())
        assert "estimator-warm-start, which is not installed: pip install estimator-warm-start" in str(refused.value)


def test_a_path_may_be_a_variable_in_one_mode_only(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (2,))
        if mode == ec.ModeKeys.TRAIN:
            y = y + ec.get_variable("of_training", ())
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=y + ec.get_variable("of_prediction", ()))
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.adam(0.1))

    config = ec.RunConfig(model_dir=str(tmp_path / "a"), tf_random_seed=1, allow_untrained=True, default_hooks=False)
    evaluated_first = ec.Estimator(model_fn, config=config)
    evaluated_first.evaluate(batches)
    evaluated_first.train(batches, steps=2)  # what the evaluation did not declare is added, optimizer slots too
    trained = estimator(tmp_path / "b", model_fn).train(batches, steps=2)
    for name in ("w", "of_training"):
        assert np.array_equal(evaluated_first.variables[name], trained.variables[name])
    with pytest.raises(ec.EstimatorError, match=r"of_prediction.*infer|infer.*of_prediction"):
        next(trained.predict(batches))


def test_an_array_of_a_source_is_not_shared_with_the_model(tmp_path: Path) -> None:
    # XLA's CPU backend aliases memory that is aligned to 64 bytes.
    memory = np.zeros(2 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    given = memory[start : start + 2]

    class Given:
        def initial_values(
            self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
        ) -> dict[str, InitialValue]:
            return {"w": InitialValue(value=given, origin="an array that its owner uses")}

    class Refilled(ec.Hook):
        """Refills the array before the first step."""

        def after_create(self, run: Any) -> None:
            given[:] = 7
            self.found = np.array(run.variables()["w"]).tolist()

    hook = Refilled()
    estimator(tmp_path, model(), warm_start_from=Given()).train(batches, steps=1, hooks=[hook])
    assert hook.found == [0, 0]
