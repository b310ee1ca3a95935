"""Tests of many small variables that pass from step to step in few arrays, without a visible difference."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core._loop.programs import Programs
from estimator_core._step import state as packing
from estimator_core._step.state import Packed, Packing, TrainState

COLUMNS = 10
X = {f"c{index}": np.random.default_rng(index).normal(size=(64, 3)).astype(np.float32) for index in range(COLUMNS)}
Y = sum(value.sum(1) for value in X.values()).astype(np.float32)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A model with a weight and a bias for each column (20 variables, 60 leaves with those of Adam), a counter, and one
    large variable.
    """
    total: Any = 0.0
    for name in sorted(features):
        weights = ec.get_variable(f"{name}/w", (3, 4), jax.nn.initializers.normal(0.1))
        total = total + jnp.tanh(features[name] @ weights + ec.get_variable(f"{name}/b", (4,)))
    seen = ec.get_variable("seen", (), jax.nn.initializers.zeros, trainable=False)
    if mode == ec.ModeKeys.TRAIN:
        ec.set_variable("seen", seen + 1)
    predictions = total.sum(1) + (features["c0"] @ ec.get_variable("large", (3, 2000))).mean(1)
    return ec.EstimatorSpec(
        mode,
        predictions=predictions,
        loss=jnp.mean((predictions - labels) ** 2) if labels is not None else None,
        train_op=optax.adam(0.01),
        eval_metric_ops={"sum": ec.metrics.mean(total)},
    )


def estimator(model_dir: Any, **config: Any) -> ec.Estimator:
    settings = {"tf_random_seed": 1, "default_hooks": False, **config}
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(model_dir), **settings))


def train_input() -> Any:
    return ec.inputs.numpy_input_fn(X, Y, batch_size=8, num_epochs=None, shuffle=True, seed=3)


def eval_input() -> Any:
    return ec.inputs.numpy_input_fn(X, Y, batch_size=16, shuffle=False)


def carried(trained: ec.Estimator) -> Any:
    return trained._state.carried


def leaves(trained: ec.Estimator) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(trained._state.state)]


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Switches packing off."""
    return lambda: monkeypatch.setattr(packing, "FEWEST", 10**9)


def test_sixty_leaves_become_eight_arrays(tmp_path: Any) -> None:
    trained = estimator(tmp_path).train(train_input(), steps=3)
    state = carried(trained)
    assert isinstance(state, Packed)
    assert len(state.groups) == 8
    assert [leaf.shape for leaf in state.rest] == [(3, 2000)] * 3
    assert len(jax.tree.leaves(trained._state.state)) == 1 + 63 + 1 + 1  # clock, leaves, Adam's count, `seen`
    assert trained.variables["c3/w"].shape == (3, 4)
    assert float(trained._state.state.model_state["seen"]) == 3


def test_the_values_are_those_of_separate_leaves(tmp_path: Any, unpacked: Any) -> None:
    together = estimator(tmp_path / "together").train(train_input(), steps=50)
    assert isinstance(carried(together), Packed)
    unpacked()
    apart = estimator(tmp_path / "apart").train(train_input(), steps=50)
    assert carried(apart).groups == ()
    for name, value in apart.variables.items():
        np.testing.assert_allclose(together.variables[name], value, rtol=2e-5, atol=2e-6)


def test_few_leaves_pass_flat_and_have_the_bits_of_the_state_as_it_is(
    tmp_path: Any, unpacked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked()
    flat = estimator(tmp_path / "flat").train(train_input(), steps=6)
    assert isinstance(carried(flat), Packed)
    monkeypatch.setattr(Programs, "packing", lambda *_: None)
    as_it_is = estimator(tmp_path / "as_it_is").train(train_input(), steps=6)
    assert isinstance(carried(as_it_is), TrainState)
    assert leaves(flat) == leaves(as_it_is)


def test_a_resumed_run_has_the_same_bits(tmp_path: Any) -> None:
    whole = estimator(tmp_path / "whole").train(train_input(), max_steps=12)
    estimator(tmp_path / "parts").train(train_input(), max_steps=5)
    parts = estimator(tmp_path / "parts").train(train_input(), max_steps=12)
    assert isinstance(carried(parts), Packed)
    assert leaves(parts) == leaves(whole)


def test_a_second_call_goes_on(tmp_path: Any) -> None:
    whole = estimator(tmp_path / "whole").train(train_input(), max_steps=12)
    parts = estimator(tmp_path / "parts").train(train_input(), max_steps=5).train(train_input(), max_steps=12)
    assert parts.trace_counts["train"] == 1
    assert leaves(parts) == leaves(whole)


@pytest.mark.slow
def test_several_steps_a_dispatch_give_the_same_values(tmp_path: Any) -> None:
    single = estimator(tmp_path / "single").train(train_input(), max_steps=12)
    several = estimator(tmp_path / "several", steps_per_dispatch=4).train(train_input(), max_steps=12)
    assert isinstance(carried(several), Packed)
    for name, value in single.variables.items():
        np.testing.assert_allclose(several.variables[name], value, rtol=1e-5, atol=1e-6)


def test_an_evaluation_between_steps_sees_the_newest_values(tmp_path: Any) -> None:
    config = {"save_checkpoints_steps": 4}
    trained = estimator(tmp_path, **config)
    spec = ec.EvalSpec(eval_input(), steps=None)
    ec.train_and_evaluate(trained, ec.TrainSpec(train_input(), max_steps=8), spec)
    results = ec.read_eval_metrics(trained.eval_dir())
    assert sorted(results) == [4, 8]
    again = estimator(tmp_path, **config)
    for step, metrics in results.items():
        path = f"{tmp_path}/checkpoints/{step}"
        assert again.evaluate(eval_input(), steps=None, checkpoint_path=path)["sum"] == metrics["sum"]


def test_a_hook_may_replace_variables(tmp_path: Any) -> None:
    class Zero(ec.Hook):
        def next_step(self, step: int) -> int | None:
            return 3 if step < 3 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            state = run.live.state
            run.live.state = state._replace(variables=jax.tree.map(jnp.zeros_like, state.variables))
            assert all(not np.asarray(value).any() for value in run.live.state.variables.values())

    trained = estimator(tmp_path)
    trained.train(train_input(), hooks=[Zero()], max_steps=3)
    assert isinstance(carried(trained), Packed)
    assert not any(np.asarray(value).any() for value in trained._state.state.variables.values())
    trained.train(train_input(), max_steps=4)
    kernels = [value for name, value in trained.variables.items() if name.endswith("/b")]
    assert all(np.abs(value).max() < 0.02 for value in kernels)  # one step from zero
    assert any(value.any() for value in kernels)


@pytest.mark.slow
def test_debug_mode_shows_every_variable(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "estimator_core"):
        trained = estimator(tmp_path, debug=True).train(train_input(), max_steps=2)
    assert not isinstance(carried(trained), Packed)
    assert "variables/c3/w" in caplog.text


CHANGES = {
    "dtype": lambda state: (state[0] + 0.5, state[1]),
    "width": lambda state: (state[0] + 1, state[1].astype(jnp.bfloat16)),
    "shape": lambda state: (state[0] + 1, jnp.zeros(3) + state[1].sum()),
}


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")  # they change their form
@pytest.mark.parametrize(
    "change", ["dtype", *(pytest.param(each, marks=pytest.mark.slow) for each in ("width", "shape"))]
)
def test_an_optimizer_may_change_the_form_of_its_state(tmp_path: Any, unpacked: Any, change: str) -> None:
    sgd = optax.sgd(0.01)

    def update(gradients: Any, state: Any, variables: Any = None) -> Any:
        updates, inner = sgd.update(gradients, state[0], variables)
        return updates, (inner, CHANGES[change](state[1]))

    def init(variables: Any) -> Any:
        return sgd.init(variables), (jnp.zeros((), jnp.int32), jnp.ones(2))

    def model(features: Any, labels: Any, mode: str) -> Any:
        total = sum(jnp.sum(ec.get_variable(f"v{index}", (3,)) * features["c0"]) for index in range(50))
        optimizer = optax.GradientTransformation(init, update)
        return ec.EstimatorSpec(mode, loss=jnp.mean((total - labels) ** 2) * 1e-3, train_op=optimizer)

    def state_after_five_steps(name: str) -> Any:
        config = ec.RunConfig(
            model_dir=str(tmp_path / name), tf_random_seed=1, save_checkpoints_steps=None, save_checkpoints_secs=None
        )
        trained = ec.Estimator(model, config=config).train(train_input(), max_steps=5)
        return trained._state.state

    together = state_after_five_steps("together")
    unpacked()
    apart = state_after_five_steps("apart")
    for ours, expected in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(np.asarray(ours, np.float32), np.asarray(expected, np.float32), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("count", "size", "together"),
    [(48, 4, True), (47, 4, False), (100, 1024, True), (100, 1025, False)],
)
def test_few_or_large_leaves_stay_apart(count: int, size: int, together: bool) -> None:
    state = TrainState(None, {str(index): np.zeros(size, np.float32) for index in range(count)}, {}, ())
    assert packing.packing_for(state, ()).shared == together


def test_large_leaves_decide_unless_a_step_touches_few_of_their_rows() -> None:
    small = {str(index): np.zeros(4, np.float32) for index in range(60)}
    state = TrainState(None, {**small, "big": np.zeros((5000, 512), np.float32)}, {}, ())
    assert not packing.packing_for(state, ()).shared
    assert packing.packing_for(state, {"big"}).shared


DTYPES = [np.float32, np.int32, np.uint32, np.float16, np.int8, jnp.bfloat16]
SHAPES = st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=70)


@settings(max_examples=25, deadline=None)
@given(SHAPES, st.integers(0, 2**32 - 1))
def test_packing_keeps_every_bit(kinds: list[Any], seed: int) -> None:
    generator = np.random.default_rng(seed)
    variables: dict[str, Any] = {}
    for index, (dtype, shape) in enumerate(kinds):
        size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        variables[f"v{index}"] = jnp.asarray(np.frombuffer(generator.bytes(size), dtype).reshape(shape))
    state = TrainState(jnp.zeros(4, jnp.uint32), variables, {}, ())
    way = Packing(state)
    back = way.unpack(way.pack(state))
    assert jax.tree.structure(back) == jax.tree.structure(state)
    for name, value in variables.items():
        assert np.asarray(back.variables[name]).tobytes() == np.asarray(value).tobytes(), name
        assert back.variables[name].dtype == value.dtype
