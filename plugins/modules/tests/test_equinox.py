"""Tests of Equinox modules (trap 35)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._model.module import module, write_back
from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import next_rng_key


class Network(eqx.Module):
    linear: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    scale: jax.Array
    steps: jax.Array
    name: str = "net"

    def __init__(self, key):
        self.linear = eqx.nn.Linear(3, 4, key=key)
        self.dropout = eqx.nn.Dropout(0.5)
        self.scale = jnp.full((4,), 2.0)
        self.steps = jnp.int32(3)

    def __call__(self, x, key=None):
        return self.dropout(self.linear(x) * jax.lax.stop_gradient(self.scale), key=key) * self.steps


class Normalised(eqx.Module):
    linear: eqx.nn.Linear
    norm: eqx.nn.BatchNorm

    def __init__(self, key):
        self.linear = eqx.nn.Linear(3, 4, key=key)
        self.norm = eqx.nn.BatchNorm(4, "batch", mode="batch")

    def __call__(self, x, state):
        return self.norm(self.linear(x), state)


def keyed(x):
    net = module(Network, name="net")
    return jax.vmap(net)(x, jax.random.split(next_rng_key(), len(x)))


def test_the_module_is_used_as_equinox_means_it(runner, batch):
    run = runner(keyed).start(batch)
    assert set(run.variables) == {"net/linear/weight", "net/linear/bias", "net/scale"}
    assert {path: value.dtype for path, value in run.model_state.items()} == {"net/steps": np.int32}
    weight, bias = (np.asarray(run.variables[f"net/linear/{name}"]) for name in ("weight", "bias"))
    np.testing.assert_allclose(run.step(batch, mode="eval"), (batch @ weight.T + bias) * 6, rtol=1e-5, atol=1e-5)
    assert (np.asarray(run.step(batch)) == 0).any()


@pytest.mark.parametrize("rule", ["linear/.*", lambda name: name != "scale"], ids=["regex", "function"])
def test_buffers_can_be_left_out_of_training(runner, batch, rule):
    run = runner(lambda x: jax.vmap(module(Network, name="net", trainable=rule))(x)).start(batch, mode="eval")
    assert set(run.variables) == {"net/linear/weight", "net/linear/bias"}
    assert set(run.model_state) == {"net/scale", "net/steps"}


def test_values_are_those_of_the_library_for_the_module_key(runner, batch):
    from estimator_core._model.initialize import seed_words, variable_key

    run = runner(keyed, seed=5).start(batch)
    alone = Network(variable_key(np.array(seed_words(5), np.uint32), "net"))
    np.testing.assert_allclose(run.variables["net/linear/weight"], alone.linear.weight, rtol=1e-6)


def stateful(x):
    net = module(lambda key: eqx.nn.make_with_state(Normalised)(key), name="net")
    mapped = jax.vmap(net.module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    outputs, net.state = mapped(x, net.state)
    return outputs


def test_state_is_threaded_from_step_to_step(runner, batch):
    run = runner(stateful).start(batch)
    assert set(run.variables) == {
        f"net/{name}" for name in ("linear/weight", "linear/bias", "norm/weight", "norm/bias")
    }
    states = [run.model_state]
    for _ in range(2):
        run.step(batch)
        states.append(run.model_state)
    assert all(name.startswith("net/state/") for name in states[0])
    assert len({tuple(np.asarray(value).tobytes() for value in state.values()) for state in states}) == 3
    run.step(batch, mode="eval")


def test_a_direct_call_threads_the_state(runner, batch):
    class Counter(eqx.Module):
        index: eqx.nn.StateIndex

        def __init__(self, key):
            self.index = eqx.nn.StateIndex(jnp.int32(0))

        def __call__(self, x, state):
            count = state.get(self.index)
            return x + count, state.set(self.index, count + 1)

    def model(x):
        net = module(lambda key: eqx.nn.make_with_state(Counter)(key), name="net")
        return net(net(x))

    run = runner(model).start(batch)
    np.testing.assert_allclose(run.step(batch), batch + 1)
    np.testing.assert_allclose(run.step(batch), batch + 5)

    def inside(x):
        return jax.vmap(module(lambda key: eqx.nn.make_with_state(Counter)(key), name="net"))(x)

    with pytest.raises(VariableError, match=r"pass network\.state to network\.module"):
        runner(inside).discover(batch)


def test_an_instance_gives_first_values(runner, batch):
    instance = Network(jax.random.key(3))
    run = runner(lambda x: jax.vmap(module(instance, name="net"))(x)).start(batch, mode="eval")
    np.testing.assert_array_equal(run.variables["net/linear/weight"], instance.linear.weight)
    run.step(batch, mode="eval")
    assert not instance.dropout.inference


def test_an_instance_made_inside_model_fn_is_refused(runner, batch):
    def model(x):
        return jax.vmap(module(Network(jax.random.key(0)), name="net"))(x)

    with pytest.raises(VariableError, match="was made inside model_fn"):
        runner(model).discover(batch)


def test_writing_back_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"equinox\.tree_at"):
        write_back(Network(jax.random.key(0)), {"net/scale": np.zeros(4)}, name="net")
