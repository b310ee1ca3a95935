"""Tests of declaring and reading variables (traps 14 and 15)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._model.access import get_variable, next_rng_key, set_variable, trainable_variables, variable_scope
from estimator_core._model.scope import applying, declaring
from estimator_core.errors import ModelFnError, VariableError


def test_paths_shapes_and_defaults(runner, batch):
    def model(x):
        with variable_scope("encoder"), variable_scope("layer_0"):
            kernel = get_variable("kernel", (3, 2))
            bias = get_variable("bias", (2,))
        return x @ kernel + bias + get_variable("table", initializer=np.arange(2, dtype=np.float32))

    run = runner(model).start(batch)
    assert [str(spec) for spec in run.specs.values()] == [
        "encoder/layer_0/kernel: float32[3,2], trainable",
        "encoder/layer_0/bias: float32[2], trainable",
        "table: float32[2], trainable",
    ]
    kernel = run.variables["encoder/layer_0/kernel"]
    assert 0 < float(jnp.abs(kernel).max()) <= np.sqrt(6 / 5)  # Glorot's bound for 3 + 2
    assert run.variables["encoder/layer_0/bias"].tolist() == [0, 0]
    assert run.variables["table"].tolist() == [0, 1]
    np.testing.assert_allclose(run.step(batch), batch @ np.asarray(kernel) + [0, 1], rtol=1e-5)


def test_a_path_asked_for_again_is_the_same_variable(runner, batch):
    run = runner(lambda x: (get_variable("a", (2,)), get_variable("a", (2,)))).start(batch)
    assert list(run.specs) == ["a"]


@pytest.mark.parametrize("change", [{"shape": (3,)}, {"dtype": "int32"}, {"trainable": False}])
def test_a_path_with_other_properties_is_refused(runner, batch, change):
    def model(x):
        get_variable("a", (2,))
        get_variable("a", **{"shape": (2,), **change})

    with pytest.raises(
        VariableError,
        match=r"float32\[2\], trainable, here or in the checkpoint that is read, and is now asked for as",
    ):
        runner(model).discover(batch)


def test_other_modes_must_agree_too(runner, batch):
    def model(x):
        return get_variable("a", (2,) if sizes[0] else (3,))

    sizes = [True]
    run = runner(model).start(batch)
    sizes[0] = False
    with pytest.raises(VariableError, match=r"One path is one variable in every mode"):
        run.discover(batch, mode="eval")


@pytest.mark.parametrize("mode", ["eval", "infer"])
def test_a_variable_the_state_lacks_is_named_with_its_mode(runner, batch, mode):
    def model(x):
        return get_variable("kernel", (3, 1)) if modes[0] == "train" else get_variable("kernell", (3, 1))

    modes = ["train"]
    run = runner(model).start(batch)
    modes[0] = mode
    with pytest.raises(VariableError, match=rf"'kernell' in mode '{mode}'.*it has: kernel"):
        run.step(batch, mode=mode)


def test_predict_first_then_train_gives_the_values_training_alone_gives(runner, batch):
    def model(x):
        y = x @ get_variable("kernel", (3, 2))
        return y + get_variable("extra", (8, 2), jax.nn.initializers.normal()) if modes[0] == "train" else y

    modes = ["infer"]
    both = runner(model, seed=3)
    both.discover(batch, mode="infer")
    modes[0] = "train"
    both.discover(batch)
    both.initialize()
    alone = runner(model, seed=3).start(batch)
    assert sorted(both.variables) == ["extra", "kernel"]
    for path, value in alone.variables.items():
        np.testing.assert_array_equal(both.variables[path], value)


def test_state_moves_from_step_to_step_in_training_only(runner, batch):
    def model(x):
        seen = get_variable("seen", (), dtype="int32", trainable=False)
        set_variable("seen", seen + 1)
        return get_variable("seen", (), dtype="int32", trainable=False)

    run = runner(model).start(batch)
    assert [int(run.step(batch)) for _ in range(3)] == [1, 2, 3]
    assert int(run.step(batch, mode="eval")) == 4
    assert int(run.model_state["seen"]) == 3


@pytest.mark.parametrize(
    ("declare", "value", "message"),
    [
        ({}, np.zeros(2, np.float32), "it is|is trainable"),
        ({"trainable": False}, np.zeros(3, np.float32), r"the value is float32\[3\], the variable float32\[2\]"),
        ({"trainable": False}, np.zeros(2, np.int32), r"the value is int32\[2\]"),
    ],
)
def test_set_variable_refuses_what_would_change_the_state(runner, batch, declare, value, message):
    def model(x):
        get_variable("a", (2,), **declare)
        set_variable("a", value)

    with pytest.raises(VariableError, match=message):
        runner(model).discover(batch)


def test_set_variable_needs_a_declared_variable(runner, batch):
    with pytest.raises(VariableError, match=r"set_variable\('a'\): no such variable"):
        runner(lambda x: set_variable("a", 1.0)).discover(batch)


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "a b", 3, None])
def test_names_that_cannot_be_paths(runner, batch, name):
    shown = repr(name) if isinstance(name, str) else f"A {type(name).__name__}"
    with pytest.raises(VariableError, match=f"^{shown} cannot name a variable or scope"):
        runner(lambda x: get_variable(name, (1,))).discover(batch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "has no shape"),
        ({"shape": 3}, "a shape is a sequence of sizes"),
        ({"shape": (1.5,)}, "a shape is a sequence of sizes"),
        ({"shape": (-1,)}, "a shape is a sequence of sizes"),
        ({"shape": (2,), "dtype": "string"}, "which no array of JAX can have"),
        ({"shape": (2,), "initializer": np.zeros(3)}, r"its initializer is an array of shape \(3,\)"),
        ({"shape": (), "initializer": object()}, "give an array or a function"),
        (
            {"shape": (), "initializer": "ones"},
            "give an array or a function of .key, shape, dtype., such as jax.nn.init",
        ),
    ],
)
def test_declarations_that_cannot_be_used(runner, batch, arguments, message):
    with pytest.raises(VariableError, match=message):
        runner(lambda x: get_variable("a", **arguments)).discover(batch)


@pytest.mark.parametrize(
    "call",
    [
        lambda: get_variable("a", (1,)),
        lambda: set_variable("a", 1),
        lambda: variable_scope("a"),
        next_rng_key,
        trainable_variables,
    ],
)
def test_calls_outside_of_model_fn(call):
    with pytest.raises(ModelFnError, match=r"ec\.\w+ was called outside of model_fn"):
        call()


def test_the_scope_ends_with_its_block_even_after_an_error():
    with pytest.raises(KeyError), declaring({}, mode="train"):
        raise KeyError
    with pytest.raises(ModelFnError):
        get_variable("a", (1,))


def test_trainable_variables_are_those_met_so_far(runner, batch):
    met = []

    def model(x):
        get_variable("a", (1,))
        met.append([spec.name for spec in trainable_variables()])
        get_variable("b", (1,), trainable=False)
        get_variable("c", (1,))
        met.append([spec.name for spec in trainable_variables()])

    run = runner(model).start(batch)
    run.step(batch)
    assert met == [["a"], ["a", "c"]] * 2


def test_a_value_of_another_shape_than_declared_is_refused(runner, batch):
    run = runner(lambda x: get_variable("a", (2,))).start(batch)
    with (
        applying({"a": jnp.zeros(3)}, {}, mode="eval", key=None, specs=run.specs),
        pytest.raises(VariableError, match=r"'a' is float32\[2\] in model_fn, but its value is float32\[3\]"),
    ):
        get_variable("a", (2,))


def test_wide_dtypes_become_what_jax_stores(runner, batch):
    run = runner(lambda x: get_variable("a", (1,), dtype=np.float64)).start(batch)
    assert run.specs["a"].dtype == np.float32
    assert run.step(batch).dtype == np.float32


def test_a_written_state_is_read_again_in_the_same_step(runner, batch):
    def model(x):
        get_variable("seen", (), trainable=False)
        set_variable("seen", 7.0)
        return get_variable("seen", (), trainable=False)

    run = runner(model).start(batch)
    assert float(run.step(batch)) == 7.0
