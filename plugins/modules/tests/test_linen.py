"""Tests of Flax Linen modules (traps 7, 12, 34, 35)."""

import jax
import numpy as np
import pytest
from flax import linen as nn

from estimator_core._model.module import module, write_back
from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import next_rng_key


class Network(nn.Module):
    features: int = 4

    @nn.compact
    def __call__(self, x, training):
        x = nn.Dense(self.features)(x)
        self.sow("intermediates", "hidden", x)
        x = nn.BatchNorm(use_running_average=not training)(x)
        return nn.Dropout(0.5)(x, deterministic=not training)


class Drop(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dropout(0.5)(nn.Dropout(0.5)(x, deterministic=False), deterministic=False)


def network(x):
    return module(Network, name="net")(x, True)


PARAMETERS = {"net/Dense_0/kernel", "net/Dense_0/bias", "net/BatchNorm_0/scale", "net/BatchNorm_0/bias"}
STATISTICS = {"net/batch_stats/BatchNorm_0/mean", "net/batch_stats/BatchNorm_0/var"}


def test_collections_become_variables_and_model_state(runner, batch):
    run = runner(network).start(batch)
    assert set(run.variables) == PARAMETERS
    assert set(run.model_state) == STATISTICS
    before = run.model_state
    run.step(batch)
    kernel = np.asarray(run.variables["net/Dense_0/kernel"])
    np.testing.assert_allclose(run.tensors["net/hidden"], batch @ kernel, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        run.model_state["net/batch_stats/BatchNorm_0/mean"], 0.01 * (batch @ kernel).mean(0), rtol=1e-4, atol=1e-7
    )
    assert set(run.model_state) == set(before)


def test_values_are_those_of_the_library_for_the_module_key(runner, batch):
    from estimator_core._model.initialize import seed_words, variable_key

    run = runner(network, seed=5).start(batch)
    key = variable_key(np.array(seed_words(5), np.uint32), "net")
    alone = Network().init({"params": key}, batch, True)["params"]
    np.testing.assert_allclose(run.variables["net/Dense_0/kernel"], alone["Dense_0"]["kernel"], rtol=1e-6)


def test_values_do_not_depend_on_the_batch(runner, batch):
    one, other = runner(network).start(batch), runner(network).start(batch[:2] * 100)
    np.testing.assert_array_equal(one.variables["net/Dense_0/kernel"], other.variables["net/Dense_0/kernel"])


def test_calls_share_variables_and_draw_masks_of_their_own(runner):
    ones = np.ones((64, 4), np.float32)

    def model(x):
        drop = module(Drop(), name="drop")
        return drop(x), drop(x)

    run = runner(model).start(ones)
    masks = [*run.step(ones, step=0), *run.step(ones, step=1)]
    assert len({np.asarray(mask).tobytes() for mask in masks}) == 4


def test_methods_that_need_other_parts_declare_them(runner, batch):
    class Autoencoder(nn.Module):
        def setup(self):
            self.encoder = nn.Dense(2)
            self.decoder = nn.Dense(3)

        def encode(self, x):
            return self.encoder(x)

        def __call__(self, x):
            return self.decoder(self.encoder(x))

    def model(x):
        net = module(Autoencoder, name="net")
        code = net(x, method="encode")
        return code, net(x)

    run = runner(model).start(batch)
    assert set(run.variables) == {
        f"net/{part}/{leaf}" for part in ("encoder", "decoder") for leaf in ("kernel", "bias")
    }
    code, _ = run.step(batch)
    np.testing.assert_allclose(code, batch @ np.asarray(run.variables["net/encoder/kernel"]), rtol=1e-5)


def test_random_numbers_inside_an_inner_trace_need_keys_of_the_user(runner, batch):
    def model(x):
        drop = module(Drop, name="drop")
        return jax.vmap(drop)(x)

    with pytest.raises(VariableError, match=r"draws random numbers inside a function that JAX traces.*rngs="):
        runner(model).discover(batch)

    def with_keys(x):
        drop = module(Drop, name="drop")
        keys = jax.random.split(next_rng_key("dropout"), len(x))
        return jax.vmap(lambda x, key: drop(x, rngs={"dropout": key}))(x, keys)

    ones = np.ones((64, 4), np.float32)
    masks = runner(with_keys).start(ones).step(ones)
    assert len({np.asarray(row).tobytes() for row in masks}) > 3


def test_state_changed_inside_an_inner_trace_is_refused(runner, batch):
    class Norm(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.BatchNorm(use_running_average=False)(x)

    def model(x):
        return jax.checkpoint(module(Norm, name="net"))(x)

    with pytest.raises(VariableError, match="changes its state inside a function that JAX traces"):
        runner(model).discover(batch)


def test_parameters_may_be_used_inside_an_inner_trace(runner, batch):
    def model(x):
        return jax.checkpoint(module(lambda: nn.Dense(4), name="net"))(x)

    run = runner(model).start(batch)
    np.testing.assert_allclose(run.step(batch), batch @ np.asarray(run.variables["net/kernel"]), rtol=1e-5)


def test_annotations_are_kept(runner, batch):
    def factory():
        return nn.Dense(4, kernel_init=nn.with_partitioning(nn.initializers.lecun_normal(), ("data", "model")))

    run = runner(lambda x: module(factory, name="net")(x)).start(batch)
    assert run.specs["net/kernel"].sharding == ("data", "model")
    assert run.specs["net/bias"].sharding is None
    run.step(batch)


def test_bound_modules_and_writing_back_are_refused(runner, batch):
    bound = nn.Dense(4).bind({"params": {}})
    with pytest.raises(VariableError, match="already bound to variables"):
        runner(lambda x: module(bound, name="net")(x)).discover(batch)
    with pytest.raises(ArgumentTypeError, match="hold no values"):
        write_back(nn.Dense(4), {"net/kernel": np.zeros(1)}, name="net")
