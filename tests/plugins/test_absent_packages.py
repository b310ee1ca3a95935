"""Tests of features whose package of the workspace is not installed: every error names the package."""

import importlib

import jax
import numpy as np
import pytest

import estimator_core as ec
from estimator_core import _moved
from estimator_core._model.module import write_back
from estimator_core._model.scope import declaring
from estimator_core._plugins import Plugins, using_plugins
from estimator_core.errors import ArgumentTypeError, PluginLookupError


class NnxModule:
    """Imitates the base class of all modules of Flax NNX, with the same module path."""

    __module__ = "flax.nnx.module"

    def __call__(self, x):
        return x


class Network(NnxModule):
    """A user's module."""


class State:
    """The state of a module of Equinox."""

    __module__ = "equinox.nn._stateful"


@pytest.fixture
def alone(monkeypatch):
    """The plugins if only the core is installed."""
    monkeypatch.setattr("estimator_core._plugins.facade.installed_candidates", list)
    return Plugins(environ={})


def bring_in(given, plugins):
    def trace():
        with declaring({}, mode="train"):
            ec.module(given, name="network")

    with using_plugins(plugins):
        jax.eval_shape(trace)


@pytest.mark.parametrize(
    ("given", "library"),
    [(Network(), "nnx"), (lambda: Network(), "nnx"), ((object(), State()), "equinox")],
    ids=["instance", "factory", "module with state"],
)
def test_a_module_of_a_library_without_its_adapter(alone, given, library):
    with pytest.raises(ArgumentTypeError, match=f"there is no adapter '{library}'") as caught:
        bring_in(given, alone)
    assert str(caught.value).startswith("ec.module cannot adapt a module of type ")
    assert "It comes with estimator-modules, which is not installed: pip install estimator-modules" in str(caught.value)


def test_loading_into_an_instance_without_its_adapter(alone):
    with using_plugins(alone), pytest.raises(ArgumentTypeError, match="pip install estimator-modules"):
        write_back(Network(), {"network/kernel": np.zeros(1)}, name="network")


def test_something_of_no_library_is_told_what_could_be_installed(alone):
    with pytest.raises(
        ArgumentTypeError, match=r"Installed adapters: none\. .*equinox, keras, linen, nnx \(pip install"
    ):
        bring_in(3, alone)


def test_the_transform_of_an_export(alone):
    with pytest.raises(PluginLookupError, match="It comes with estimator-inputs, which is not installed"):
        alone.get("transform", "parse_example")


def test_an_input(alone):
    with pytest.raises(PluginLookupError, match="pip install estimator-inputs"):
        alone.get("input", "pandas")


def test_the_names_that_moved_are_those_of_tf_example_and_pandas():
    names = {name for name, (_, distribution) in _moved.MOVED.items() if distribution == "estimator-inputs"}
    assert {"inputs.pandas_input_fn", "export.build_parsing_serving_input_receiver_fn"} <= names
    assert {"export.FixedLenFeature", "export.VarLenFeature", "export.FixedLenSequenceFeature"} <= names
    assert "export.example_class" in names


@pytest.mark.parametrize("face", ["export", "inputs"])
def test_a_name_that_never_was(face):
    with pytest.raises(AttributeError, match=f"module 'estimator_core.{face}' has no attribute 'pandas_input'"):
        _ = getattr(ec, face).pandas_input


@pytest.mark.plugins
def test_public_names_are_those_of_the_package():
    assert ec.inputs.pandas_input_fn is importlib.import_module("estimator_inputs").pandas_input_fn
    for name, (module, _) in _moved.MOVED.items():
        face, _, own = name.rpartition(".")
        if face == "export":
            assert getattr(ec.export, own) is getattr(importlib.import_module(module), own)
            assert own not in ec.export.__all__  # `import *` works without the package
