"""The suite for module adapters."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.errors import ArgumentTypeError, VariableError
from estimator_core.model import ModuleAdapter
from estimator_testing._core import Trainable, is_traced
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.module_runner import ModuleRunner
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

_IMPORT = "import importlib, sys; importlib.import_module({module!r}); print({library!r} in sys.modules)"


class ModuleAdapterSuite(Suite):
    """Proves that the parameters of library modules become variables of the scope, and that nothing else changes.

    Subclass it, implement `make` and `module` with at least one parameter, and define inputs.

    Example:
        >>> class TestAffineAdapter(ModuleAdapterSuite):
        ...     def make(self):
        ...         return AffineAdapter()
        ...
        ...     def module(self):
        ...         return Affine(features=3)
        ...
        ...     def inputs(self, rng):
        ...         return rng.normal(size=(4, 2)).astype(np.float32)
    """

    def make(self) -> ModuleAdapter:
        """Returns the adapter."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def module(self) -> Any:
        """Returns a module of the library, made outside model_fn, the same each time."""
        raise NotImplementedError(f"{type(self).__name__} must define module(self)")

    def inputs(self, rng: np.random.Generator) -> Any:
        """Returns the input of the module: an array, or a tree of arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define inputs(self, rng)")

    def call(self, module: Any, inputs: Any) -> Any:
        """Calls the module, and returns one array."""
        return module(inputs)

    def test_is_a_module_adapter(self) -> None:
        """It has the methods of ModuleAdapter, and handles its own modules only."""
        adapter, module = self.make(), self.module()
        assert isinstance(adapter, ModuleAdapter), f"{adapter!r} lacks a method of ModuleAdapter"
        assert adapter.library in sys.modules, f"library {adapter.library!r} is not imported by making a module"
        assert adapter.handles(module) is True, f"handles({module!r}) is not True"
        for other in (object(), 1.0, "text", np.zeros(2), {"a": 1}, len):
            assert adapter.handles(other) is False, f"handles({other!r}) is not False"

    def test_its_file_does_not_import_the_library(self) -> None:
        """The import of the adapter does not import its library, because every model_fn asks every adapter."""
        adapter = self.make()
        if adapter.library in sys.builtin_module_names:
            return
        script = _IMPORT.format(module=type(adapter).__module__, library=adapter.library)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "False", f"importing {type(adapter).__module__} imports {adapter.library}"

    def test_declares_its_parameters(self) -> None:
        """Its parameters are trainable variables under the module's name, the same in every discovery."""
        runner, again = self._started(), self._started()
        assert runner.variables, "it declares no trainable variable"
        assert all(path.startswith("module/") for path in runner.specs), f"paths: {sorted(runner.specs)}"
        assert list(runner.specs) == list(again.specs)
        for path, value in {**runner.variables, **runner.model_state}.items():
            np.testing.assert_array_equal(value, {**again.variables, **again.model_state}[path], path)

    def test_computes_with_its_variables(self) -> None:
        """The output is computed from the passed values, and each of them affects it."""
        runner, inputs = self._started(), self._inputs()
        first, _ = runner.apply(runner.variables, inputs)
        for path, value in runner.variables.items():
            changed, _ = runner.apply({**runner.variables, path: value + 1}, inputs)
            assert not np.array_equal(changed, first), f"the output does not depend on {path}"
        again, _ = runner.apply(runner.variables, inputs)
        np.testing.assert_array_equal(again, first, "the values of an earlier call are still there")

    def test_gradient_is_that_of_the_output(self) -> None:
        """The gradient of every variable is the slope of the output, measured by central differences."""
        runner, inputs = self._started(), self._inputs()

        def loss(variables: Any) -> Any:
            return jnp.mean(jnp.square(runner.apply(variables, inputs)[0]))

        gradient = jax.jit(jax.grad(loss))(runner.variables)
        rng = np.random.default_rng(0)
        for path, value in runner.variables.items():
            direction = rng.normal(size=value.shape).astype(np.float32)
            ahead, behind = (loss({**runner.variables, path: value + sign * direction / 64}) for sign in (1, -1))
            slope = (ahead - behind) * 32
            np.testing.assert_allclose(jnp.sum(gradient[path] * direction), slope, rtol=2e-2, atol=2e-3, err_msg=path)

    def test_is_traced_once(self) -> None:
        """The compiled module returns the same as the uncompiled one, and is traced once for any number of calls."""
        runner, inputs = self._started(), self._inputs()
        eager, _ = runner.apply(runner.variables, inputs)
        runner.traces = 0
        step = jax.jit(lambda variables, inputs: runner.apply(variables, inputs))
        for _ in range(3):
            np.testing.assert_allclose(step(runner.variables, inputs)[0], eager, rtol=1e-5, atol=1e-6)
        assert runner.traces == 1, f"{runner.traces} traces for three calls"

    def test_model_state_goes_round(self) -> None:
        """The model state after a training step can be passed to the next step; evaluation leaves it unchanged."""
        runner, inputs = self._started(), self._inputs()
        before = dict(runner.model_state)
        _, runner.model_state = runner.apply(runner.variables, inputs, mode="train", step=1)
        assert {path: value.shape for path, value in runner.model_state.items()} == {
            path: value.shape for path, value in before.items()
        }
        _, after = runner.apply(runner.variables, inputs)
        for path, value in runner.model_state.items():
            np.testing.assert_array_equal(after[path], value, f"evaluation changed {path}")

    def test_evaluation_is_deterministic(self) -> None:
        """In EVAL the output does not depend on the random key."""
        runner, inputs = self._started(), self._inputs()
        first, *others = (runner.apply(runner.variables, inputs, step=step)[0] for step in range(6))
        for other in others:
            np.testing.assert_array_equal(other, first)

    def test_the_instance_is_left_alone(self) -> None:
        """Traces do not change the module, and it holds no traced value afterwards."""
        module, inputs = self.module(), self._inputs()
        before = copy.deepcopy(_values(module))
        runner = self._runner(module).start(inputs)
        jax.jit(lambda variables: runner.apply(variables, inputs, mode="train")[0])(runner.variables)
        after = _values(module)
        assert not any(is_traced(value) for value in after), "the module keeps a traced value"
        assert len(after) == len(before)
        for now, then in zip(after, before, strict=True):
            np.testing.assert_array_equal(now, then, "the module given to ec.module was changed")

    def test_can_be_frozen(self) -> None:
        """With `trainable=False` no variable is trainable, and no initial value changes."""
        frozen, free = self._started(trainable=False), self._started()
        assert not frozen.variables, f"trainable=False leaves {sorted(frozen.variables)} trainable"
        for path, value in free.variables.items():
            np.testing.assert_array_equal(frozen.model_state[path], value, path)

    def test_values_are_written_back(self) -> None:
        """`write_back` writes the values into an instance by name, and refuses others; or it refuses all instances."""
        runner, adapter, instance = self._started(), self.make(), self.module()
        values = {path.removeprefix("module/"): np.asarray(value) + 1 for path, value in runner.variables.items()}
        values |= {path.removeprefix("module/"): np.asarray(value) for path, value in runner.model_state.items()}
        try:
            adapter.write_back(instance, values)
        except ArgumentTypeError:
            return
        again = self._runner(instance).start(self._inputs())
        for path, value in again.variables.items():
            np.testing.assert_array_equal(value, values[path.removeprefix("module/")], path)
        with pytest.raises(VariableError):
            adapter.write_back(self.module(), {name: np.zeros((17,), np.float32) for name in values})

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, a module has the same variables and output."""
        runner = self._started()
        output, _ = runner.apply(runner.variables, self._inputs())
        found = [(path, np.asarray(runner.variables[path])) for path in sorted(runner.variables)]
        same_under_another_seed(request, [found, np.asarray(output)])

    def test_leaves_nothing_behind(self) -> None:
        """Starting and applying a module changes nothing in the process, such as the random generators."""

        def use(module: Any) -> None:
            runner = self._runner(module).start(self._inputs())
            runner.apply(runner.variables, self._inputs())

        with loading():
            use(self.module())
        module = self.module()
        with leaving_nothing("after a module was applied, the adapter"):
            use(module)

    def _inputs(self) -> Any:
        return self.inputs(np.random.default_rng(5))

    def _runner(self, module: Any, trainable: Trainable = None) -> ModuleRunner:
        return ModuleRunner(adapter=self.make(), thing=module, call=self.call, trainable=trainable)

    def _started(self, trainable: Trainable = None) -> ModuleRunner:
        return self._runner(self.module(), trainable).start(self._inputs())


def _values(module: Any) -> list[Any]:
    """Returns the arrays that an object holds: its leaves if it is a tree of arrays, otherwise its attributes."""
    leaves = jax.tree.leaves(module)
    found = leaves if leaves != [module] else jax.tree.leaves(vars(module))
    return [leaf for leaf in found if isinstance(leaf, (np.ndarray, jax.Array))]
