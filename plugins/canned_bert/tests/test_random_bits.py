"""Tests of the bits of dropout masks: uniform, dependent only on their place, and uncorrelated within one hash."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_canned_bert.encoder import random_bits
from estimator_canned_bert.encoder.layers import dropout
from estimator_canned_bert.encoder.random_bits import bits_of_16


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.asarray(bits_of_16(jax.random.key(seed), shape))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 4, 9), (4, 0)])
def test_every_shape_is_drawn_and_every_key_draws_others(shape: tuple[int, ...]) -> None:
    assert drawn(shape).shape == shape
    assert drawn(shape).dtype == np.uint16
    assert drawn(shape).size == 0 or not np.array_equal(drawn(shape), drawn(shape, seed=1))


def test_values_are_uniform_bit_by_bit_and_in_their_parts_of_a_hash() -> None:
    values = drawn((1000, 1024))
    for part in range(4):
        own = values[:, 256 * part : 256 * (part + 1)].ravel()
        counts = np.bincount(own >> 8, minlength=256)
        expected = own.size / 256
        assert ((counts - expected) ** 2 / expected).sum() < 350  # chi-squared, 255 degrees of freedom: p = 7e-5
        shares = [(own >> bit & 1).mean() for bit in range(16)]
        assert np.abs(np.array(shares) - 0.5).max() < 5 * 0.5 / np.sqrt(own.size)


@pytest.mark.parametrize("distance", [1, 2, 256, 512, 768, 1024])  # 256: other parts of one hash
def test_neighbours_are_not_correlated(distance: int) -> None:
    values = drawn((1000, 1024)).ravel().astype(np.float64)
    found = np.corrcoef(values[:-distance], values[distance:])[0, 1]
    assert abs(found) < 5 / np.sqrt(values.size)
    assert len(np.unique(drawn((64, 64)))) > 3900  # 4,096 draws from 65,536 have about 3,970 different values


@pytest.mark.parametrize("hashes", [(8192, 16, 512, 128), (4, 2**31), (3, 2**32), (2**32, 3)], ids=str)
def test_no_two_places_of_a_huge_array_have_the_same_counters(hashes: tuple[int, ...]) -> None:
    corners = [slice(None, None, max(1, length - 1)) for length in hashes]
    halves = [slice(None, None, -(-length // 2)) for length in hashes]

    @jax.jit  # computes only these places
    def some() -> list[tuple[jax.Array, ...]]:
        return [tuple(word[tuple(at)].ravel() for word in random_bits._counters(hashes)) for at in (corners, halves)]

    for words in some():
        places = list(zip(*(np.asarray(word).tolist() for word in words), strict=True))
        assert len(set(places)) == len(places) == 2 ** sum(length > 1 for length in hashes)


@pytest.mark.parametrize("shape", [(2, 2**35), (2**33, 4)], ids=str)
def test_what_two_words_cannot_count_is_left_to_jax(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: asked.append(shape) or jnp.zeros(shape, dtype))
    assert jax.eval_shape(lambda: bits_of_16(jax.random.key(0), shape)).shape == shape
    assert asked == [shape]


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_drops_the_share_and_keeps_the_mean(rate: float) -> None:
    result = np.asarray(dropout(jnp.ones((500, 1000)), rate, jax.random.key(3)))
    assert abs((result == 0).mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / result.size)
    np.testing.assert_allclose(result[result != 0], 1 / (1 - rate), rtol=1e-6)


@pytest.mark.parametrize("rate", [0.99999, 0.9999999])
def test_dropout_of_nearly_everything_keeps_one_in_65536(rate: float) -> None:
    kept = int((np.asarray(dropout(jnp.ones((4000, 4096)), rate, jax.random.key(3))) != 0).sum())
    assert abs(kept - 4000 / 16) < 5 * np.sqrt(4000 / 16)


def test_another_generator_is_asked_by_jax() -> None:
    key = jax.random.key(0, impl="rbg")
    expected = jax.random.bits(key, (3, 5), jnp.uint16)
    np.testing.assert_array_equal(bits_of_16(key, (3, 5)), expected)


SPLIT = """
import jax, numpy as np
from estimator_canned_bert.encoder.random_bits import bits_of_16

mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
alone = np.asarray(bits_of_16(jax.random.key(5), (8, 6, 10)))
for axes in (("data",), ("data", None, "model"), (None, "model", None), ()):
    placed = jax.sharding.NamedSharding(mesh, jax.P(*axes))
    compiled = jax.jit(lambda key: bits_of_16(key, (8, 6, 10)), out_shardings=placed).lower(jax.random.key(5)).compile()
    assert np.array_equal(alone, compiled(jax.random.key(5))), axes
    text = compiled.as_text()
    assert axes != ("data",) or not any(name in text for name in ("all-gather", "all-reduce", "permute")), text
"""


@pytest.mark.slow
def test_eight_devices_draw_the_bits_of_one_and_exchange_nothing() -> None:
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", SPLIT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
