"""The suite for initial values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.model import InitialValue, InitialValues, VariableSpec, check_value, request_initial_values
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite


class InitialValuesSuite(Suite):
    """Proves that a source of initial values replaces the matching variables once, and nothing else.

    Subclass it, implement `make`, and define variables, of which it replaces at least one.

    Example:
        >>> class TestTable(InitialValuesSuite):
        ...     def make(self, folder):
        ...         np.savez(folder / "table.npz", kernel=np.ones((2, 3), np.float32))
        ...         return Table(folder / "table.npz")
        ...
        ...     def variables(self):
        ...         return {"kernel": np.zeros((2, 3), np.float32), "bias": np.zeros(3, np.float32)}
    """

    def make(self, folder: Path) -> InitialValues:
        """Returns the source. It may write into the folder, which is empty or has the files of an earlier call."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self, folder)")

    def variables(self) -> Mapping[str, np.ndarray]:
        """Returns variables by path, with the values of their initialisers."""
        raise NotImplementedError(f"{type(self).__name__} must define variables(self)")

    def test_is_initial_values(self, tmp_path: Path) -> None:
        """It has the method of InitialValues."""
        assert isinstance(self.make(tmp_path), InitialValues)

    def test_gives_what_fits(self, tmp_path: Path) -> None:
        """Its values belong to existing variables, have their shapes and kinds of number, and name their origin."""
        specs = self._specs()
        given = self._given(self.make(tmp_path))
        assert given, f"it replaces none of {sorted(specs)}; variables() must have one that it replaces"
        for path, one in given.items():
            assert path in specs, f"it returns a value for {path!r}, which is not among the variables"
            check_value(specs[path], one.value, "the value", f"of {one.origin}")
            assert one.origin.strip(), f"the value of {path!r} does not say where it comes from"

    def test_leaves_out_what_it_does_not_know(self, tmp_path: Path) -> None:
        """A variable that only the model has keeps the value of its initialiser."""
        nobody = "a_variable/that_nobody/else_has"
        spec = VariableSpec(nobody, (7, 5), np.dtype(np.float32), jax.nn.initializers.zeros, True)
        assert nobody not in self._given(self.make(tmp_path), {nobody: spec})

    def test_is_deterministic(self, tmp_path: Path) -> None:
        """A second call returns the same values, and so does another object from `make`."""
        source = self.make(tmp_path)
        first = {path: np.array(one.value) for path, one in self._given(source).items()}
        for again in (source, self.make(tmp_path)):
            values = {path: one.value for path, one in self._given(again).items()}
            assert set(values) == set(first), f"it replaced {sorted(first)}, and then {sorted(values)}"
            for path, value in first.items():
                np.testing.assert_array_equal(values[path], value, f"asked again, it returns another value of {path!r}")

    def test_its_values_are_in_place_at_the_first_step(self, tmp_path: Path) -> None:
        """A run starts from its values, through `warm_start_from` and from model_fn. Other variables keep theirs."""
        source = self.make(tmp_path)
        given, before = self._given(source), self.variables()
        for name, estimator in (
            ("warm_start_from", self._estimator(tmp_path / "argument", warm_start_from=source)),
            ("request_initial_values", self._estimator(tmp_path / "request", asked=source)),
        ):
            estimator.train(batches, steps=1)  # the step does not change the variables
            for path, value in before.items():
                expected = np.asarray(given[path].value, value.dtype) if path in given else value
                found = estimator.get_variable_value(path)
                np.testing.assert_array_equal(found, expected, f"{name}: the run does not start from {path!r}")

    def test_a_checkpoint_wins(self, tmp_path: Path) -> None:
        """A resumed run does not call it."""
        source = Counted(self.make(tmp_path))
        for _ in range(2):
            self._estimator(tmp_path / "run", warm_start_from=source).train(batches, steps=1)
        assert source.asked == 1, f"it was asked {source.asked} times in a run and its continuation"

    def test_another_hash_seed(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, it returns the same values."""
        given = self._given(self.make(tmp_path))
        same_under_another_seed(request, [(path, np.asarray(given[path].value)) for path in sorted(given)])

    def test_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """Once its values are read no thread runs, no file is open, and the state of the process is as before."""
        kept = [self.make(tmp_path)]
        with loading():
            self._given(kept[0])
        with leaving_nothing("after its values were read, the source"):
            kept.append(self.make(tmp_path))
            self._given(kept[1])

    def _specs(self) -> dict[str, VariableSpec]:
        return {
            path: VariableSpec(path, value.shape, value.dtype, value, bool(jnp.issubdtype(value.dtype, jnp.floating)))
            for path, value in self.variables().items()
        }

    def _given(
        self, source: InitialValues, more: Mapping[str, VariableSpec] | None = None
    ) -> Mapping[str, InitialValue]:
        return source.initial_values({**self._specs(), **(more or {})}, lambda path: jax.random.key(len(path)))

    def _estimator(
        self, model_dir: Path, *, warm_start_from: InitialValues | None = None, asked: InitialValues | None = None
    ) -> ec.Estimator:
        specs = self._specs()

        def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
            values = [
                ec.get_variable(path, spec.shape, spec.initializer, spec.dtype, spec.trainable)
                for path, spec in specs.items()
            ]
            unused = ec.get_variable("the_suite/trains_this", ())
            if asked is not None:
                request_initial_values(asked)
            loss = (unused * features).mean() + sum(0.0 * jnp.sum(value) for value in values)
            return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0))

        config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, default_hooks=False)
        return ec.Estimator(model_fn, config=config, warm_start_from=warm_start_from)


class Counted:
    """A source that counts its calls."""

    def __init__(self, source: InitialValues) -> None:
        self.source, self.asked = source, 0

    def initial_values(self, specs: Mapping[str, VariableSpec], key: Any) -> Mapping[str, InitialValue]:
        """Returns the values of the source."""
        self.asked += 1
        return self.source.initial_values(specs, key)


def batches() -> list[tuple[np.ndarray, None]]:
    """Returns one batch of two numbers."""
    return [(np.zeros(2, np.float32), None)]
