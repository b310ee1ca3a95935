"""Tests of `ec.module`: what it accepts, plain functions, and adapters of other packages."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from estimator_core._model.access import get_variable, variable_scope
from estimator_core._model.module import module, write_back
from estimator_core.errors import ArgumentTypeError, ModelFnError, VariableError


def dense(x, features=2):
    return x @ get_variable("kernel", (x.shape[-1], features))


class Scale:
    """A module of a library that only an adapter of another package knows."""

    def __init__(self, value=1.0):
        self.value = value


class ScaleAdapter:
    name = "scale"
    library = "builtins"

    def handles(self, module):
        return isinstance(module, Scale)

    def bind(self, binding):
        value = np.float32(binding.module.value)
        first = value if binding.make is None else (lambda key, shape, dtype: np.full(shape, value, dtype))
        return lambda x: x * binding.variable("value", (), "float32", first)

    def write_back(self, module, values):
        module.value = float(values["value"])


def lookup():
    yield ScaleAdapter()


def test_a_function_has_its_variables_under_its_name(runner, batch):
    def model(x):
        with variable_scope("body"):
            first = module(dense, name="first")
            second = module(functools.partial(dense, features=3), name="second")
        return first(x), first(x), second(x)

    run = runner(model).start(batch)
    assert [str(spec) for spec in run.specs.values()] == [
        "body/first/kernel: float32[3,2], trainable",
        "body/second/kernel: float32[3,3], trainable",
    ]
    once, again, _ = run.step(batch)
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("given", [Scale(3.0), Scale, lambda: Scale(3.0)], ids=["instance", "class", "factory"])
def test_an_adapter_from_elsewhere(runner, batch, given):
    run = runner(lambda x: module(given, name="scale", adapters=lookup)(x)).start(batch)
    value = float(run.variables["scale/value"])
    assert value == (1.0 if given is Scale else 3.0)
    np.testing.assert_allclose(run.step(batch), value * batch)
    target = Scale()
    write_back(target, {"scale/value": np.float32(7)}, name="scale", adapters=lookup)
    assert target.value == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, r"cannot adapt a module of type builtins\.int \(given\).*equinox, keras, linen, nnx"),
        (None, r"cannot adapt a module of type builtins\.NoneType"),
        (lambda: 3, r"made by the factory .*lambda"),
        (lambda rngs, key: 3, "takes both rngs and key"),
        (lambda *args: 3, r"lambda key: f\(key=key\)"),
        (type("Net", (), {"__init__": lambda self, hidden: None}), r"needs the arguments hidden.*lambda rngs: "),
        (
            functools.partial(type("Net", (), {"__init__": lambda self, hidden, depth: None}), 3),
            "needs the arguments depth",
        ),
    ],
)
def test_what_is_no_module(runner, batch, given, message):
    with pytest.raises(ArgumentTypeError, match=message):
        runner(lambda x: module(given, name="net")).discover(batch)


def test_trainable_of_another_type(runner, batch):
    with pytest.raises(ArgumentTypeError, match=r"trainable=\.\.\.\) is 3"):
        runner(lambda x: module(Scale, name="net", trainable=3, adapters=lookup)).discover(batch)


def test_the_same_name_twice(runner, batch):
    with pytest.raises(VariableError, match=r"already has a module named 'net'"):
        runner(lambda x: (module(dense, name="net"), module(dense, name="net"))).discover(batch)


def test_outside_of_model_fn():
    with pytest.raises(ModelFnError, match=r"ec\.module was called outside of model_fn"):
        module(dense, name="net")


def test_writing_back_into_something_unknown():
    with pytest.raises(ArgumentTypeError, match="cannot adapt a module"):
        write_back(3, {}, name="net")


def test_libraries_that_a_model_does_not_use_are_not_imported():
    program = """
import sys
import jax
from estimator_core._model.access import get_variable
from estimator_core._model.module import module
from estimator_core._model.scope import declaring
def trace(x):
    with declaring({}, mode="train"):
        return module(lambda x: x * get_variable("a", ()), name="f")(x)
jax.eval_shape(trace, 1.0)
print(sorted({"flax", "equinox", "keras", "orbax"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
