"""Tests of random keys (trap 7) and initial values by path (trap 14)."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_core._model.access import get_variable, next_rng_key, variable_scope
from estimator_core._model.initialize import initialize, path_hash, seed_words, step_key, variable_key
from estimator_core._model.scope import applying
from estimator_core._model.variables import make_spec
from estimator_core.errors import VariableError


def draw(name="rng"):
    return jax.random.uniform(next_rng_key(name))


def test_every_call_gives_another_key_and_every_step_others(runner, batch):
    run = runner(lambda x: (draw(), draw(), draw("noise"))).start(batch)
    first, second = run.step(batch, step=0), run.step(batch, step=1)
    assert len({float(value) for value in (*first, *second)}) == 6
    assert run.step(batch, step=1) == second


def test_keys_do_not_depend_on_unrelated_calls(runner, batch):
    def plain(x):
        return draw("dropout")

    def more(x):
        get_variable("a", (2,))
        draw("noise"), draw()
        with variable_scope("other"):
            draw("dropout")
        return draw("dropout")

    assert float(runner(plain).start(batch).step(batch)) == float(runner(more).start(batch).step(batch))


def test_the_seed_counts_with_64_bits():
    words = [np.array(seed_words(seed), np.uint32) for seed in (7, 7 + 2**32)]
    keys = [tuple(np.asarray(jax.random.key_data(variable_key(one, "a")))) for one in words]
    assert keys[0] != keys[1]


def test_a_step_and_a_path_of_the_same_number_have_different_keys():
    words = np.array(seed_words(0), np.uint32)
    assert (variable_key(words, "a") != step_key(words, path_hash("a"))).all()


def test_keys_are_the_same_in_every_version():
    # Recorded values: a change of these numbers changes every resumed run.
    words = np.array(seed_words(12345), np.uint32)
    assert path_hash("encoder/layer_0/kernel") == 235396283
    assert np.asarray(jax.random.key_data(variable_key(words, "a"))).tolist() == [786134788, 3895617075]
    assert np.asarray(jax.random.key_data(step_key(words, 17))).tolist() == [1813009984, 709144201]


def test_the_generator_does_not_follow_the_configuration():
    words = np.array(seed_words(1), np.uint32)
    before = np.asarray(jax.random.key_data(step_key(words, 1)))
    with jax.default_prng_impl("rbg"):
        np.testing.assert_array_equal(np.asarray(jax.random.key_data(step_key(words, 1))), before)


def test_no_key_where_none_is_given():
    with applying({}, {}, mode="infer", key=None, specs={}), pytest.raises(VariableError, match="no random key"):
        next_rng_key()


@settings(max_examples=6, deadline=None)
@given(st.permutations(["a", "b/kernel", "b/bias", "c"]), st.integers(1, 4), st.integers(0, 2**64 - 1))
def test_values_depend_neither_on_order_nor_on_other_variables(order, count, seed):
    specs = {path: make_spec(path, (2, 2), jax.nn.initializers.normal()) for path in order}
    some = initialize({path: specs[path] for path in order[:count]}, seed)
    everything = initialize(dict(sorted(specs.items())), seed)
    assert list(some) == order[:count]
    for path, value in some.items():
        np.testing.assert_array_equal(value, everything[path])
    assert len({np.asarray(value).tobytes() for value in everything.values()}) == 4


@pytest.mark.parametrize("placed", [False, True])
def test_host_arrays_pass_through_and_are_not_shared(placed):
    # JAX aliases memory that is aligned to 64 bytes.
    memory = np.zeros(4096 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    given_array = memory[start : start + 4096]
    sharding = {"a": jax.sharding.SingleDeviceSharding(jax.devices()[0])} if placed else None
    value = initialize({"a": make_spec("a", None, given_array)}, 0, out_shardings=sharding)["a"]
    given_array += 1
    assert not np.asarray(value).any()


def test_values_are_placed_as_asked():
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="unpinned_host")
    specs = {"a": make_spec("a", (2,)), "b": make_spec("b", None, np.ones(2))}
    values = initialize(specs, 0, out_shardings=dict.fromkeys(specs, sharding))
    assert {value.sharding for value in values.values()} == {sharding}


@pytest.mark.parametrize(
    "initializer",
    [lambda key, shape, dtype: np.zeros((3,), dtype), lambda key, shape, dtype: np.zeros(shape, np.int32)],
)
def test_an_initialiser_must_give_what_was_declared(initializer):
    with pytest.raises(VariableError, match=r"The initializer of variable 'a' returned .* declared: float32\[2\]"):
        initialize({"a": make_spec("a", (2,), initializer)}, 0)
