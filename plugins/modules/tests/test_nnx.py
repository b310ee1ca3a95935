"""Tests of Flax NNX modules (traps 5, 6, 7, 12, 14, 24, 33)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from estimator_core._model.module import module, write_back
from estimator_core.errors import VariableError
from estimator_core.model import get_variable

pytestmark = pytest.mark.filterwarnings("ignore:Using 'Module.sow")


class Network(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.dropout_too = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        x = self.norm(self.dense(x))
        for layer in self.layers:
            x = layer(x)
        return self.dropout(x)


PATHS = {
    "net/dense/bias",
    "net/dense/kernel",
    "net/layers/0/bias",
    "net/layers/0/kernel",
    "net/layers/1/bias",
    "net/layers/1/kernel",
    "net/norm/bias",
    "net/norm/scale",
}


def network(x):
    return module(Network, name="net")(x)


def test_parameters_are_variables_and_statistics_model_state(runner, batch):
    run = runner(network).start(batch)
    assert set(run.variables) == PATHS
    assert set(run.model_state) == {"net/norm/mean", "net/norm/var"}
    before = run.model_state
    run.step(batch)
    assert set(run.model_state) == set(before)
    assert not np.array_equal(run.model_state["net/norm/mean"], before["net/norm/mean"])
    np.testing.assert_allclose(
        run.model_state["net/norm/mean"],
        0.01 * np.mean(batch @ np.asarray(run.variables["net/dense/kernel"]), axis=0),
        rtol=1e-4,
        atol=1e-7,
    )


def test_values_are_those_of_the_library_for_the_module_key(runner, batch):
    from estimator_core._model.initialize import seed_words, variable_key

    run = runner(network, seed=5).start(batch)
    alone = Network(nnx.Rngs(variable_key(np.array(seed_words(5), np.uint32), "net")))
    np.testing.assert_allclose(run.variables["net/layers/1/kernel"], alone.layers[1].kernel[...], rtol=1e-6)


def test_other_variables_do_not_change_the_values_of_a_module(runner, batch):
    def more(x):
        other = module(Network, name="another")(x)
        return network(x) + other * get_variable("scale", ())

    alone, together = runner(network).start(batch), runner(more).start(batch)
    for path in PATHS:
        np.testing.assert_array_equal(alone.variables[path], together.variables[path])
    assert not np.array_equal(together.variables["another/dense/kernel"], together.variables["net/dense/kernel"])


def test_one_discovery_and_one_trace_a_mode(runner, batch):
    run = runner(network).start(batch)
    for step in range(3):
        run.step(batch, step=step)
        run.step(batch, mode="eval")
    assert run.traces == 3


def test_dropout_layers_have_masks_of_their_own_that_change_with_the_step(runner):
    ones = np.ones((64, 4), np.float32)

    def model(x):
        net = module(Network, name="net")
        return net.dropout(x), net.dropout_too(x), net.dropout(x)

    run = runner(model).start(ones)
    masks = [*run.step(ones, step=0), *run.step(ones, step=1)]
    assert len({np.asarray(mask).tobytes() for mask in masks}) == 6
    again = run.step(ones, step=1)
    np.testing.assert_array_equal(again[0], masks[3])


class Stacked(nnx.Module):
    """Layers in one scan, as the Flax documentation describes it. Their parameters and random streams are stacked."""

    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return nnx.Dropout(0.5, rngs=rngs)

        self.layers = make(rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
        def masks(x, layer):
            return x, layer(x)

        return masks(x, self.layers)[1]


def test_stacked_dropout_layers_have_masks_of_their_own(runner):
    ones = np.ones((64, 4), np.float32)
    run = runner(lambda x: module(Stacked, name="net")(x)).start(ones)
    masks = [*run.step(ones, step=0), *run.step(ones, step=1)]
    assert len({np.asarray(mask).tobytes() for mask in masks}) == 6
    np.testing.assert_array_equal(run.step(ones, step=1), masks[3:])
    np.testing.assert_array_equal(run.step(ones, mode="eval"), np.ones((3, 64, 4)))


class Attending(nnx.Module):
    def __init__(self, said, rngs):
        self.attention = nnx.MultiHeadAttention(1, 4, dropout_rate=0.5, deterministic=said, decode=False, rngs=rngs)

    def __call__(self, x):
        return self.attention(x)


@pytest.mark.parametrize("said", [None, False, True])
def test_a_layer_that_says_neither_way_is_random_in_training_alone(runner, said):
    """Attention of Flax refuses to run before a call of `train()` or `eval()`."""
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    run = runner(lambda x: module(lambda rngs: Attending(said, rngs), name="net")(x)).start(x)
    first, second = (np.asarray(run.step(x, step=step)) for step in (0, 1))
    assert np.array_equal(first, second) == (said is True)
    np.testing.assert_array_equal(*(np.asarray(run.step(x, mode="eval", step=step)) for step in (0, 1)))


@pytest.mark.parametrize("mode", ["eval", "infer"])
def test_outside_training_it_is_deterministic_and_uses_the_running_statistics(runner, batch, mode):
    run = runner(network).start(batch)
    state = run.model_state
    first, second = run.step(batch, mode=mode, step=0), run.step(batch, mode=mode, step=1)
    np.testing.assert_array_equal(first, second)
    assert run.model_state is state


def test_the_same_name_twice_is_an_error_unless_reused(runner, batch):
    def twice(x):
        return module(Network, name="net")(x) + module(lambda rngs: nnx.Linear(3, 4, rngs=rngs), name="net")(x)

    with pytest.raises(VariableError, match=r"a module named 'net'.*reuse=True"):
        runner(twice).discover(batch)

    def reused(x):
        first = module(Network, name="net")
        assert module(Network, name="net", reuse=True) is first
        return first(x)

    assert set(runner(reused).start(batch).variables) == PATHS


class Decoder(nnx.Module):
    def __init__(self, embedding, rngs):
        self.embedding = embedding
        self.scale = nnx.Param(jax.random.normal(rngs(), ()))

    def __call__(self, x):
        return self.embedding.attend(x) * self.scale[...]


def tied(x):
    encoder = module(lambda rngs: nnx.Embed(5, 4, rngs=rngs), name="encoder")
    decoder = module(lambda rngs: Decoder(encoder, rngs), name="decoder")
    return decoder(encoder(x))


def test_tied_weights_keep_their_first_path_and_stay_tied(runner):
    ids = np.array([0, 3])
    run = runner(tied).start(ids)
    assert set(run.variables) == {"encoder/embedding", "decoder/scale"}
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    run.variables = {"encoder/embedding": jnp.asarray(table), "decoder/scale": jnp.float32(2)}
    np.testing.assert_allclose(run.step(ids), 2 * table[ids] @ table.T)


class Outer(nnx.Module):
    def __init__(self, shared, rngs):
        self.shared = shared
        self.own = nnx.Linear(3, 1, rngs=rngs)

    def __call__(self, x):
        return self.own(self.shared(x))


def test_parts_of_a_module_with_tied_weights_are_loaded_by_their_own_paths():
    first = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    second = Outer(first, nnx.Rngs(1))
    shapes = {"first/kernel": (3, 3), "first/bias": (3,), "second/own/kernel": (3, 1), "second/own/bias": (1,)}
    values = {name: np.full(shape, 7, np.float32) for name, shape in shapes.items()}
    with pytest.raises(VariableError, match=r"- shared/bias: not given\n.*\n.*Load each part by its own path"):
        write_back(second, values, name="second")
    write_back(second.shared, values, name="first")
    write_back(second.own, values, name="second/own")
    assert second(np.ones((1, 3), np.float32)).tolist() == [[3 * 28 * 7 + 7]]


def test_values_of_another_module_are_not_taken_for_tied_weights():
    values = {"m/first/kernel": np.ones((3, 3), np.float32), "m/bias": np.ones(3, np.float32)}
    with pytest.raises(VariableError, match=r"first/kernel: not in the instance") as refused:
        write_back(nnx.Linear(3, 3, rngs=nnx.Rngs(0)), values, name="m")
    assert "Load each part" not in str(refused.value)


def test_weights_tied_inside_one_module_are_stored_once(runner, batch):
    class Tied(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(3, 3, rngs=rngs)
            self.second = self.first

        def __call__(self, x):
            return self.second(self.first(x))

    run = runner(lambda x: module(Tied, name="net")(x)).start(batch)
    assert set(run.variables) == {"net/first/kernel", "net/first/bias"}


def test_sown_values_become_tensors_and_no_state(runner, batch):
    class Sowing(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(3, 4, rngs=rngs)

        def __call__(self, x):
            x = self.dense(x)
            self.sow(nnx.Intermediate, "hidden", x)
            return x

    def model(x):
        net = module(Sowing, name="net")
        return net(x), net(x + 1)

    run = runner(model).start(batch)
    assert run.model_state == {}
    outputs = run.step(batch)
    assert set(run.tensors) == {"net/hidden", "net/hidden_1"}
    np.testing.assert_array_equal(run.tensors["net/hidden"], outputs[0])
    np.testing.assert_array_equal(run.tensors["net/hidden_1"], outputs[1])


def test_values_sown_outside_of_model_fn_stay_there(runner, batch):
    class Sowing(nnx.Module):
        def __call__(self, x):
            self.sow(nnx.Intermediate, "all", x)
            self.sow(nnx.Intermediate, "last", x, init_fn=lambda: None, reduce_fn=lambda before, value: value)
            return x

    instance = Sowing()
    instance(batch[:2])
    run = runner(lambda x: module(instance, name="net")(x)).start(batch)
    run.step(batch)
    assert run.model_state == {}
    assert {name: value.shape for name, value in run.tensors.items()} == {"net/all": (8, 3), "net/last": (8, 3)}
    assert len(instance.all.get_value()) == 1


def test_state_made_during_a_call_is_refused(runner, batch):
    class Lazy(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(3, 4, rngs=rngs)

        def __call__(self, x):
            self.cache = nnx.Cache(x)
            return self.dense(x)

    with pytest.raises(VariableError, match=r"has made Cache 'cache' while it was called"):
        runner(lambda x: module(Lazy, name="net")(x)).discover(batch)


def test_state_that_changes_its_shape_is_refused(runner, batch):
    class Growing(nnx.Module):
        def __init__(self, rngs):
            self.seen = nnx.BatchStat(jnp.zeros(3))

        def __call__(self, x):
            self.seen.set_value(x)
            return x

    with pytest.raises(VariableError, match=r"the value is float32\[8,3\], the variable float32\[3\]"):
        runner(lambda x: module(Growing, name="net")(x)).discover(batch)


def test_an_instance_gives_first_values_and_never_changes(runner, batch):
    instance = Network(nnx.Rngs(11))
    before = jax.tree.map(np.asarray, nnx.to_pure_dict(nnx.state(instance, nnx.Not(nnx.RngState))))
    run = runner(lambda x: module(instance, name="net")(x)).start(batch)
    assert set(run.variables) == PATHS
    np.testing.assert_array_equal(run.variables["net/dense/kernel"], instance.dense.kernel[...])
    for mode in ("train", "eval", "train"):
        run.step(batch, mode=mode)
    after = nnx.to_pure_dict(nnx.state(instance, nnx.Not(nnx.RngState)))
    jax.tree.map(np.testing.assert_array_equal, after, before)
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(nnx.state(instance)))
    assert not instance.dropout.deterministic


def test_weights_of_an_instance_are_arguments_of_the_program(runner, batch):
    instance = nnx.Linear(3, 1000, rngs=nnx.Rngs(0))
    run = runner(lambda x: module(instance, name="net")(x)).start(batch)
    program = jax.make_jaxpr(lambda v, x: run._apply("train", v, {}, 0, x)[0])(run.variables, batch)
    assert not [one for one in program.consts if np.size(one) > 10]


def test_an_instance_taken_in_by_a_factory_does_not_change_either(runner):
    embedding = nnx.Embed(5, 4, rngs=nnx.Rngs(0))
    before = np.asarray(embedding.embedding[...])
    ids = np.array([1, 2])

    def model(x):
        decoder = module(lambda rngs: Decoder(embedding, rngs), name="decoder")
        return decoder(decoder.embedding(x))

    run = runner(model).start(ids)
    assert set(run.variables) == {"decoder/embedding/embedding", "decoder/scale"}
    np.testing.assert_array_equal(run.variables["decoder/embedding/embedding"], before)
    assert isinstance(run.specs["decoder/embedding/embedding"].initializer, np.ndarray)  # not a constant of a program
    run.step(ids)
    np.testing.assert_array_equal(embedding.embedding[...], before)


def test_instances_that_share_a_parameter_share_it_here(runner):
    encoder = nnx.Embed(5, 4, rngs=nnx.Rngs(0))
    decoder = Decoder(encoder, nnx.Rngs(1))
    ids = np.array([0, 3])

    def model(x):
        hidden = module(encoder, name="encoder")(x)
        return module(decoder, name="decoder")(hidden)

    run = runner(model).start(ids)
    assert set(run.variables) == {"encoder/embedding", "decoder/scale"}
    table = np.ones((5, 4), np.float32)
    run.variables = {"encoder/embedding": jnp.asarray(table), "decoder/scale": jnp.float32(1)}
    np.testing.assert_allclose(run.step(ids), np.full((2, 5), 4))


def test_instances_that_share_statistics_are_refused(runner, batch):
    class Holder(nnx.Module):
        def __init__(self, norm):
            self.norm = norm

        def __call__(self, x):
            return self.norm(x)

    norm = nnx.BatchNorm(3, rngs=nnx.Rngs(0))

    def model(x):
        x = module(norm, name="a")(x)
        return module(Holder(norm), name="b")(x)

    with pytest.raises(VariableError, match=r"'b' and 'a/mean' share BatchStat 'norm/mean'"):
        runner(model).discover(batch)


def test_an_instance_made_inside_model_fn_is_refused(runner, batch):
    with pytest.raises(VariableError, match=r"was made inside model_fn.*ec\.module\(Network, \.\.\.\)"):
        runner(lambda x: module(Network(nnx.Rngs(0)), name="net")(x)).discover(batch)


def test_annotations_are_kept_without_a_mesh(runner, batch):
    def factory(rngs):
        kernel_init = nnx.with_partitioning(nnx.initializers.lecun_normal(), ("data", "model"))
        return nnx.Linear(3, 4, kernel_init=kernel_init, rngs=rngs)

    run = runner(lambda x: module(factory, name="net")(x)).start(batch)
    assert run.specs["net/kernel"].sharding == ("data", "model")
    assert run.specs["net/bias"].sharding is None
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):  # it has no axis "model"
        other = runner(lambda x: module(factory, name="net")(x)).start(batch)
        np.testing.assert_array_equal(other.step(batch), run.step(batch))


@pytest.mark.parametrize(
    "trainable", [r"layers/.*|norm/.*", lambda name: name.startswith(("layers/", "norm/"))], ids=["regex", "function"]
)
def test_a_part_can_be_frozen(runner, batch, trainable):
    run = runner(lambda x: module(Network, name="net", trainable=trainable)(x)).start(batch)
    assert set(run.variables) == {path for path in PATHS if "dense" not in path}
    frozen = run.model_state["net/dense/kernel"]
    run.step(batch)
    np.testing.assert_array_equal(run.model_state["net/dense/kernel"], frozen)


def test_a_factory_without_arguments_gives_its_own_values(runner, batch):
    run = runner(lambda x: module(lambda: nnx.Linear(3, 4, rngs=nnx.Rngs(7)), name="net")(x)).start(batch)
    np.testing.assert_array_equal(run.variables["net/kernel"], nnx.Linear(3, 4, rngs=nnx.Rngs(7)).kernel[...])
    run.step(batch)


def test_values_are_written_back_into_an_instance(runner, batch):
    run = runner(network).start(batch)
    run.step(batch)
    instance = Network(nnx.Rngs(99))
    values = {path: np.asarray(value) for path, value in {**run.variables, **run.model_state}.items()}
    write_back(instance, {**values, "other/kernel": np.zeros(1)}, name="net")
    instance.eval()
    np.testing.assert_allclose(instance(batch), run.step(batch, mode="eval"), rtol=1e-5, atol=1e-6)


def test_values_that_do_not_fit_change_nothing(runner, batch):
    run = runner(network).start(batch)
    values = {path: np.asarray(value) for path, value in {**run.variables, **run.model_state}.items()}
    instance = Network(nnx.Rngs(99))
    kernel = np.asarray(instance.dense.kernel[...])
    values["net/layers/1/kernel"] = np.zeros((2, 2), np.float32)
    del values["net/norm/scale"]
    with pytest.raises(VariableError, match=r"(?s)! layers/1/kernel: given \(2, 2\).*- norm/scale: not given"):
        write_back(instance, values, name="net")
    np.testing.assert_array_equal(instance.dense.kernel[...], kernel)
    with pytest.raises(VariableError, match=r"no variables under 'nett'.*net"):
        write_back(instance, values, name="nett")
