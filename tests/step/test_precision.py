"""Tests of the dynamic scale of the loss: what an overflow skips, and how the scale changes."""

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._step.precision import LossScale, all_finite, initial_loss_scale, next_loss_scale, where_finite


def after(scale, good_steps, *, finite):
    moved = next_loss_scale(LossScale(jnp.float32(scale), jnp.int32(good_steps)), jnp.bool_(finite))
    return float(moved.scale), int(moved.good_steps)


def test_a_step_that_overflows_is_left_out_and_halves_the_scale():
    assert float(initial_loss_scale().scale) == 2.0**15
    overflowed = {"w": jnp.array([1.0, jnp.inf]), "ids": jnp.array([1])}
    assert not bool(all_finite(overflowed))
    old, new = {"w": np.zeros(2)}, {"w": np.ones(2)}
    np.testing.assert_array_equal(where_finite(all_finite(overflowed), new, old)["w"], old["w"])
    np.testing.assert_array_equal(where_finite(all_finite(old), new, old)["w"], new["w"])
    assert after(2.0**15, 7, finite=False) == (2.0**14, 0)
    assert after(1.0, 7, finite=False) == (1.0, 0)


@pytest.mark.parametrize(
    ("scale", "good_steps", "finite", "expected"),
    [
        (2.0**15, 1998, True, (2.0**15, 1999)),
        (2.0**15, 1999, True, (2.0**16, 0)),
        (2.0**24, 1999, True, (2.0**24, 0)),
        (2.0**15, 1999, False, (2.0**14, 0)),
    ],
)
def test_the_scale_grows_after_two_thousand_good_steps(scale, good_steps, finite, expected):
    assert after(scale, good_steps, finite=finite) == expected
