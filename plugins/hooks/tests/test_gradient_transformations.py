"""Tests of transformations by name against transformations that are composed with optax by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_hooks as eh
from estimator_hooks.averaging.transformation import averages_in

PARAMS = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(3.0)}


def trajectory(tx: Any, steps: int = 6) -> list[Any]:
    params, state, seen = PARAMS, tx.init(PARAMS), []
    for step in range(steps):
        gradients = jax.tree.map(lambda p, step=step: p * (1 + step), params)
        updates, state = tx.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        seen.append(params)
    return seen


@pytest.mark.parametrize(
    ("text", "by_hand"),
    [
        ("clip_by_global_norm=0.5", lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1))),
        ("clip_by_value = 0.1", lambda: optax.chain(optax.clip(0.1), optax.sgd(0.1))),
        ("adaptive_clip=0.01", lambda: optax.chain(optax.adaptive_grad_clip(0.01), optax.sgd(0.1))),
        ("clip_by_block_rms=0.3", lambda: optax.chain(optax.clip_by_block_rms(0.3), optax.sgd(0.1))),
        ("zero_nans", lambda: optax.chain(optax.zero_nans(), optax.sgd(0.1))),
        ("accumulate=3", lambda: optax.MultiSteps(optax.sgd(0.1), 3)),
        ("accumulate=2; clip_by_value=1", lambda: optax.MultiSteps(optax.chain(optax.clip(1.0), optax.sgd(0.1)), 2)),
        ("", lambda: optax.sgd(0.1)),
    ],
)
def test_as_composed_by_hand(text: str, by_hand: Any):
    ours, theirs = trajectory(eh.with_transformations(optax.sgd(0.1), text)), trajectory(by_hand())
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_list_and_the_order():
    tx = eh.with_transformations(optax.sgd(0.1), ["ema_of_weights=0.9", "clip_by_value=1.0", "clip_by_global_norm=0.5"])
    by_hand = optax.chain(optax.clip(1.0), optax.clip_by_global_norm(0.5), optax.sgd(0.1), eh.ema_of_weights(0.9))
    jax.tree.map(np.testing.assert_array_equal, trajectory(tx), trajectory(by_hand))


def test_every_name_is_described_and_works():
    for name in eh.GRADIENT_TRANSFORMATIONS:
        text = name if name in ("zero_nans", "centralize") else f"{name}={0.5 if name != 'accumulate' else 2}"
        assert np.isfinite(trajectory(eh.with_transformations(optax.sgd(0.1), text))[-1]["b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clip", "Unknown gradient transformation 'clip'. Known: "),
        ("clip_by_value", "'clip_by_value' needs a number: it limits every gradient"),
        ("zero_nans=1", "'zero_nans' takes no number"),
        ("clip_by_value=x", "'x' is not a number"),
        ("clip_by_value=1;clip_by_value=2", "'clip_by_value' is given twice"),
        ("accumulate", "needs a number of steps, accumulate=4"),
        ("accumulate=1.5", "needs a number of steps"),
        ("accumulate=0", "needs a number of steps"),
        ("accumulate=nan", "needs a number of steps"),
        ("accumulate=inf", "needs a number of steps"),
        ("clip_by_global_norm=nan", "'clip_by_global_norm' needs a number above 0; given: nan"),
        ("clip_by_value=-1", "'clip_by_value' needs a number above 0; given: -1"),
        ("ema_of_weights=2", "decay must be between 0 and 1"),
    ],
)
def test_refused(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        eh.with_transformations(optax.sgd(0.1), text)


def test_the_average_follows_its_formula():
    tx = eh.with_transformations(optax.sgd(0.1), "ema_of_weights=0.8")
    params, state, average = PARAMS, tx.init(PARAMS), PARAMS
    for _ in range(5):
        updates, state = tx.update(params, state, params)
        params = optax.apply_updates(params, updates)
        average = jax.tree.map(lambda a, p: 0.8 * a + 0.2 * p, average, params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), averages_in(state), average)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn], ids=lambda dtype: dtype.__name__)
def test_the_average_of_weights_of_16_bits_moves_by_small_steps(dtype: Any):
    """The same holds for weights of 8 bits, which jax does not promote automatically."""
    tx, weights = eh.ema_of_weights(0.999), {"w": jnp.ones(2, dtype)}
    state = tx.init({"w": jnp.zeros(2, dtype)})
    for _ in range(2000):
        _, state = tx.update({"w": jnp.zeros(2, dtype)}, state, weights)
    np.testing.assert_allclose(averages_in(state)["w"], 1 - 0.999**2000, rtol=1e-4)
