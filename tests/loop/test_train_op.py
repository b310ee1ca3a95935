"""Tests of the forms of train_op."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = np.linspace(0, 2, 8, dtype=np.float32)


def batches() -> Any:
    return [({"x": X}, Y)] * 4


def train(model_fn: Any, tmp_path: Any, steps: int = 4, hooks: Any = (), **config: Any) -> ec.Estimator:
    settings = {
        "model_dir": str(tmp_path),
        "tf_random_seed": 1,
        "save_checkpoints_steps": None,
        "default_hooks": False,
        "save_summary_steps": None,
        **config,
    }
    return ec.Estimator(model_fn, config=ec.RunConfig(**settings)).train(batches, steps=steps, hooks=hooks)


def two_layers(train_op: Any) -> Any:
    """A model with variables a/w, a/b and b/w."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        with ec.variable_scope("a"):
            hidden = features["x"] @ ec.get_variable("w", (3, 4)) + ec.get_variable(
                "b", (4,), jax.nn.initializers.zeros
            )
        with ec.variable_scope("b"):
            y = (jnp.tanh(hidden) @ ec.get_variable("w", (4, 1)))[:, 0]
        loss = jnp.mean((y - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=train_op(loss, hidden), predictions=y)

    return model_fn


def by_hand(steps: int, update: Any, start: dict[str, Any]) -> dict[str, np.ndarray]:
    """Runs the same training, written with jax alone."""

    def loss_fn(values: dict[str, Any]) -> Any:
        hidden = X @ values["a/w"] + values["a/b"]
        return jnp.mean(((jnp.tanh(hidden) @ values["b/w"])[:, 0] - Y) ** 2)

    values = {name: jnp.asarray(value) for name, value in start.items()}
    for _ in range(steps):
        values = update(values, jax.grad(loss_fn)(values))
    return {name: np.asarray(value) for name, value in values.items()}


@pytest.fixture
def start(tmp_path: Any) -> dict[str, Any]:
    model_fn = two_layers(lambda loss, hidden: optax.sgd(0.0))
    return train(model_fn, tmp_path / "start", steps=1).variables


def test_a_transformation_changes_everything(tmp_path: Any, start: dict[str, Any]) -> None:
    trained = train(two_layers(lambda loss, hidden: optax.sgd(0.1)), tmp_path).variables
    expected = by_hand(4, lambda values, grads: {name: values[name] - 0.1 * grads[name] for name in values}, start)
    for name, value in expected.items():
        np.testing.assert_allclose(trained[name], value, rtol=1e-5)


def test_minimize_changes_matching_variables_only_and_has_slots_for_them_alone(
    tmp_path: Any, start: dict[str, Any]
) -> None:
    estimator = train(two_layers(lambda loss, hidden: ec.minimize(loss, optax.adam(0.1), variables="b/.*")), tmp_path)
    trained = estimator.variables
    assert np.array_equal(trained["a/w"], start["a/w"])
    assert np.array_equal(trained["a/b"], start["a/b"])
    assert not np.array_equal(trained["b/w"], start["b/w"])
    slots = [leaf.shape for leaf in jax.tree.leaves(estimator._state.state.opt_state)]
    assert sorted(slots) == [(), (4, 1), (4, 1)]


def test_a_group_gives_each_loss_its_own_variables(tmp_path: Any, start: dict[str, Any]) -> None:
    def two_losses(loss: Any, hidden: Any) -> Any:
        return ec.group(
            ec.minimize(loss, optax.sgd(0.1), variables="b/.*"),
            ec.minimize(-jnp.mean(hidden), optax.sgd(0.5), variables="a/.*"),
        )

    trained = train(two_layers(two_losses), tmp_path, steps=1).variables

    def first(values: Any) -> Any:
        hidden = X @ values["a/w"] + values["a/b"]
        return jnp.mean(((jnp.tanh(hidden) @ values["b/w"])[:, 0] - Y) ** 2)

    def second(values: Any) -> Any:
        return -jnp.mean(X @ values["a/w"] + values["a/b"])

    grads, other = jax.grad(first)(start), jax.grad(second)(start)
    np.testing.assert_allclose(trained["b/w"], start["b/w"] - 0.1 * grads["b/w"], rtol=1e-5)
    np.testing.assert_allclose(trained["a/w"], start["a/w"] - 0.5 * other["a/w"], rtol=1e-5)


def test_a_custom_update_may_ask_for_gradients_twice(tmp_path: Any, start: dict[str, Any]) -> None:
    def sharpness_aware(variables: Any, opt_state: Any, grad_fn: Any) -> Any:
        _, first = grad_fn(variables)
        moved = {name: value + 0.05 * first[name] for name, value in variables.items()}
        _, second = grad_fn(moved)
        return {name: value - 0.1 * second[name] for name, value in variables.items()}, opt_state

    trained = train(two_layers(lambda loss, hidden: sharpness_aware), tmp_path, steps=2).variables

    def by_hand_update(values: Any, grads: Any) -> Any:
        def loss_fn(point: Any) -> Any:
            hidden = X @ point["a/w"] + point["a/b"]
            return jnp.mean(((jnp.tanh(hidden) @ point["b/w"])[:, 0] - Y) ** 2)

        second = jax.grad(loss_fn)({name: values[name] + 0.05 * grads[name] for name in values})
        return {name: values[name] - 0.1 * second[name] for name in values}

    for name, value in by_hand(2, by_hand_update, start).items():
        np.testing.assert_allclose(trained[name], value, rtol=1e-5)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("optimizer", [optax.adam, optax.sgd])  # the steps of adam do not depend on a factor
def test_accumulation_gives_the_step_of_the_whole_batch(tmp_path: Any, count: int, optimizer: Any) -> None:
    model = two_layers(lambda loss, hidden: optimizer(0.1))
    whole = train(model, tmp_path / "whole").variables
    parts = train(model, tmp_path / "parts", accumulate_steps=count).variables
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=2e-5, atol=1e-6)


def test_extra_arguments_reach_the_transformation(tmp_path: Any) -> None:
    seen: list[str] = []

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        seen.extend(sorted(extra))
        return jax.tree.map(lambda value: -0.1 * value * extra["value"], updates), state

    transformation = optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)
    train(two_layers(lambda loss, hidden: transformation), tmp_path, steps=1)
    assert "value" in seen


def test_constant_hyperparameters_can_be_read_and_are_no_curves(tmp_path: Any) -> None:
    read: dict[str, float] = {}

    class Looks(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            read.update({name: float(out[name]) for name in ("learning_rate", "b1", "b2")})

    schedule = optax.linear_schedule(0.9, 0.8, 4)
    estimator = train(
        two_layers(lambda loss, hidden: optax.inject_hyperparams(optax.adam)(learning_rate=0.1, b1=schedule)),
        tmp_path,
        log_step_count_steps=1,
        steps=2,
        hooks=[Looks()],
    )
    assert read == pytest.approx({"learning_rate": 0.1, "b1": 0.875, "b2": 0.999})
    assert {"learning_rate", "b1"} <= set(estimator.history.train[0])
    assert not {"b2", "eps", "eps_root"} & set(estimator.history.train[0])


def test_hyperparameters_are_outputs_by_name(tmp_path: Any) -> None:
    schedule = optax.linear_schedule(0.1, 0.0, 4)
    estimator = train(
        two_layers(lambda loss, hidden: optax.inject_hyperparams(optax.sgd)(learning_rate=schedule)),
        tmp_path,
        log_step_count_steps=1,
    )
    assert [row["learning_rate"] for row in estimator.history.train] == pytest.approx(
        [0.1, 0.075, 0.05, 0.025], abs=1e-6
    )


def test_the_whole_name_of_a_variable_must_match(tmp_path: Any, start: dict[str, Any]) -> None:
    """ "b" is not the name of a variable, although "b/w" begins with it."""
    with pytest.raises(ec.EstimatorError, match=r"no trainable variable matches 'b'"):
        train(two_layers(lambda loss, hidden: ec.minimize(loss, optax.sgd(0.1), variables="b")), tmp_path)


def noisy(features: Any, labels: Any, mode: str) -> Any:
    """A model with two equal micro-batches, whose losses differ only by their noise. It counts its calls per step."""
    scale = ec.get_variable("scale", (), jax.nn.initializers.ones)
    seen = ec.get_variable("seen", (), dtype="int32", trainable=False)
    ec.set_variable("seen", seen + 1)
    noise = jax.random.normal(ec.next_rng_key(), (4,))
    ec.tensor("noise", noise)
    loss = jnp.mean(noise * scale + 0.0 * features["x"][:4, 0])
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


class Noise(ec.Hook):
    """Keeps the noise of the last step."""

    def begin(self, run: Any) -> None:
        run.fetch("noise")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.noise = np.asarray(out["noise"])


def test_micro_batches_draw_masks_of_their_own(tmp_path: Any) -> None:
    hook = Noise()
    train(noisy, tmp_path, steps=1, hooks=[hook], accumulate_steps=2)
    first, second = hook.noise.reshape(2, 4)
    assert not np.array_equal(first, second)


def test_micro_batches_hand_their_state_on(tmp_path: Any) -> None:
    assert int(train(noisy, tmp_path, steps=3, accumulate_steps=2).variables["seen"]) == 6


@pytest.mark.parametrize("optimizer", [optax.lookahead(optax.sgd(0.1), 5, 0.5), optax.lbfgs()], ids=["pairs", "lbfgs"])
def test_an_optimizer_that_needs_more_is_told_how_it_is_called(tmp_path, optimizer):
    with pytest.raises((AttributeError, TypeError)) as raised:
        train(two_layers(lambda loss, hidden: optimizer), tmp_path)
    (told,) = [note for note in raised.value.__notes__ if "train_op" in note]
    assert "update(gradients, state, variables, value=loss, grad=gradients)" in told
    assert told.endswith("is called by your own ec.custom_train_op.")


def test_a_custom_train_op_gives_an_optimizer_the_function_of_the_loss(tmp_path: Any) -> None:
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    optimizer = optax.lbfgs()

    def stepped(variables: Any, state: Any, grad_fn: Any) -> Any:
        loss, grads = grad_fn(variables)
        more = {"value": loss, "grad": grads, "value_fn": lambda others: grad_fn(others)[0]}
        updates, state = optimizer.update(grads, state, variables, **more)
        return optax.apply_updates(variables, updates), state

    def loss_of(variables: Any) -> Any:
        return jnp.mean((x @ variables["w"] - x.sum(1)) ** 2)

    def of_line(features: Any, labels: Any, mode: str) -> Any:
        loss = jnp.mean((features["x"] @ ec.get_variable("w", (4,)) - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=ec.custom_train_op(stepped, optimizer.init))

    batches = ec.inputs.numpy_input_fn({"x": x}, x.sum(1), batch_size=16, num_epochs=None, shuffle=False)
    estimator = ec.Estimator(of_line, model_dir=str(tmp_path))
    for max_steps in (2, 4):  # the second call restores the memory of the optimizer
        estimator.train(batches, max_steps=max_steps)
    expected, state = {"w": jnp.zeros(4)}, optimizer.init({"w": jnp.zeros(4)})
    for _ in range(4):
        expected, state = stepped(expected, state, jax.value_and_grad(loss_of))
    np.testing.assert_allclose(estimator.get_variable_value("w"), expected["w"], rtol=1e-5)
