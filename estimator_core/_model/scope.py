"""The variable scope, which functions in a model_fn (`ec.get_variable`, `ec.module`, `ec.summary`) use.

There are two kinds. While *declaring* (the abstract discovery trace), variables are recorded and read as zeros. While
*applying* (every real trace), they have the given values.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core import _jax_values as jax_values
from estimator_core._model.initialize import named_key
from estimator_core._model.variables import VariableSpec, as_computed, as_stored, check_path, conflict
from estimator_core.errors import ModelFnError, VariableError
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._model.initial_values import InitialValues

OutputKind = Literal["scalar", "histogram", "image", "text", "tensor"]

_active: ContextVar[Scope | None] = ContextVar("estimator_core_variable_scope", default=None)


@dataclass(frozen=True)
class Output:
    """A named value that the step returns in addition to the spec.

    Args:
        kind: the kind of output for hooks.
        value: a traced array; a string if `kind` is "text".
    """

    kind: OutputKind
    value: Any


class Scope:
    """The scope of one call of model_fn. `declaring` and `applying` create it.

    Attributes:
        mode: the mode in which model_fn was called.
        padded: whether rows of the batch are padding.
        specs: every known or requested variable, by path.
        met: the variables requested in this trace, in order.
        summaries: summaries by name.
        tensors: the named tensors by name. Complete after the scope is closed.
        requests: initial values that model_fn requested.
        modules: the results of `ec.module`, by path.
        notes: the data that module adapters keep within one trace, by adapter.
        fresh: whether first values will be computed for the variables.
    """

    def __init__(self, *, mode: str, specs: Mapping[str, VariableSpec], padded: bool, fresh: bool) -> None:
        self.mode = mode
        self.padded = padded
        self.fresh = fresh
        self.specs: dict[str, VariableSpec] = dict(specs)
        self.met: dict[str, VariableSpec] = {}
        self.summaries: dict[str, Output] = {}
        self.tensors: dict[str, Output] = {}
        self.requests: list[InitialValues] = []
        self.modules: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self._collectors: list[Callable[[], None]] = []
        self._prefix = ""
        self._written: dict[str, Any] = {}
        self._key_counts: Counter[str] = Counter()
        self._trace = jax_values.trace_state()
        self._cache_key = jax_values.new_cache_key()

    @property
    def new_model_state(self) -> dict[str, Any]:
        """The model state after the trace and after the scope is closed. Paths, shapes and dtypes do not change."""
        raise NotImplementedError

    @property
    def is_outermost(self) -> bool:
        """Whether no function that JAX traces by itself has been entered since the scope was opened."""
        return self._trace == jax_values.trace_state()

    def path(self, name: str) -> str:
        """Returns the path of a name in the current part of the model."""
        check_path(name)
        return f"{self._prefix}/{name}" if self._prefix else name

    def inside(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Prefixes the names that are used inside the block."""
        return self.at(self.path(name))

    @contextlib.contextmanager
    def at(self, path: str) -> Generator[None]:
        """Puts the names that are used inside the block below a path, from anywhere in the model."""
        outside, self._prefix = self._prefix, path
        try:
            with jax_values.separate_traces(self._cache_key, path):
                yield
        finally:
            self._prefix = outside

    def read(self, spec: VariableSpec) -> Any:
        """Declares a variable and returns its value.

        Raises:
            VariableError: the variable was declared with another shape, dtype or trainable, or does not exist in this
                state.
        """
        if self._cache_key is None and jax_values.is_staged():
            raise VariableError(
                f"Variable {spec.name!r} is read inside a compiled function, but this model_fn runs without "
                "compilation. Run it under "
                "jax.disable_jit(), or read the variable outside that function and pass it in."
            )
        known = self.specs.get(spec.name)
        wrong = conflict(known, spec) if known is not None else None
        if wrong is not None:
            raise wrong
        if known is not None and (known.sharding is not None or spec.sharding is None):
            spec = known
        elif known is not None:  # a checkpoint has no sharding
            spec = replace(known, sharding=spec.sharding, memory=spec.memory)
        self._meet(spec)
        if spec.name in self._written:
            return self._written[spec.name]
        return as_computed(spec, self.first_value(spec))

    def write(self, path: str, value: object) -> None:
        """Sets the next value of a variable of the model state.

        Raises:
            VariableError: the variable does not exist or is trainable, or the value has another shape or dtype.
        """
        spec = self.met.get(path)
        if spec is None:
            raise VariableError(
                f"set_variable({path!r}): no such variable in this trace. Declare it with get_variable(..., "
                "trainable=False)."
            )
        if spec.trainable:
            raise VariableError(
                f"set_variable({path!r}): the variable is trainable, so the optimiser writes it. Declare it with "
                "trainable=False to write it here."
            )
        self.require_outermost(f"set_variable({path!r})", "return the value from the inner function and set it outside")
        given = jnp.asarray(value, spec.dtype) if _has_no_dtype(value) else as_stored(spec, jnp.asarray(value))
        if given.shape != spec.shape or given.dtype != spec.dtype:
            raise VariableError(
                f"set_variable({path!r}): the value is {_kind_of(given)}, the variable {_kind_of(spec)}. The "
                "model state keeps its shapes "
                "and dtypes from step to step; reshape or cast the value."
            )
        self._written[path] = given

    def key(self, path: str) -> jax.Array:
        """Returns a random key of this step. The n-th call with a path always returns the same key."""
        self.require_outermost(
            "next_rng_key()",
            "every iteration or example would get the same key: take one key outside, and split it or fold the "
            "index in with jax.random",
        )
        count = self._key_counts[path]
        self._key_counts[path] += 1
        return named_key(self.step_key(), path, count)

    def add_output(self, path: str, output: Output) -> None:
        """Makes a value an output of the step.

        Raises:
            ModelFnError: the name is taken, or the value belongs to an inner trace. A prediction ignores a summary that
                repeats the name of another summary or belongs to an inner trace.
        """
        nobody_writes = self.mode == ModeKeys.PREDICT and output.kind != "tensor"
        if nobody_writes and (path in self.summaries or not self.is_outermost):
            return  # a prediction may call the model several times, also inside a gradient
        called = f"ec.tensor({path!r})" if output.kind == "tensor" else f"ec.summary.{output.kind}({path!r})"
        self.require_outermost(called, "return the value from the inner function and name it outside", ModelFnError)
        if path in self.summaries or path in self.tensors:
            raise ModelFnError(
                f"{called}: an output of the step is called {path!r} already. "
                "Use another name, or ec.variable_scope around one."
            )
        (self.tensors if output.kind == "tensor" else self.summaries)[path] = output

    def at_close(self, collect: Callable[[], None]) -> None:
        """Registers a function that is called once when the scope closes. It writes the changes of a module."""
        self._collectors.append(collect)

    def close(self) -> None:
        """Collects the changes of modules. It is called if the scope ends without an error."""
        collectors, self._collectors = self._collectors, []
        for collect in collectors:
            collect()

    def require_outermost(self, what: str, advice: str, error: type[Exception] = VariableError) -> None:
        """Refuses a call inside scan, cond, vmap, grad, checkpoint or jit."""
        if not self.is_outermost:
            raise error(
                f"{what} inside a function that JAX traces by itself (scan, cond, vmap, grad, checkpoint, jit): "
                f"{advice}."
            )

    def separate_traces(self) -> contextlib.AbstractContextManager[None]:
        """Prevents JAX from reusing traces of another scope for this scope's functions."""
        return jax_values.separate_traces(self._cache_key, "")

    def _meet(self, spec: VariableSpec) -> None:
        self.met.setdefault(spec.name, spec)
        self.specs[spec.name] = spec

    def first_value(self, spec: VariableSpec) -> Any:
        """Returns the value of a variable before this trace writes it."""
        raise NotImplementedError

    def step_key(self) -> jax.Array:
        """Returns the random key of the step."""
        raise NotImplementedError


class _DeclaringScope(Scope):
    @property
    def new_model_state(self) -> dict[str, Any]:
        return {
            path: self._written[path] if path in self._written else self.first_value(spec)
            for path, spec in self.specs.items()
            if not spec.trainable
        }

    def first_value(self, spec: VariableSpec) -> Any:
        # Created in the trace that requests it, so that it cannot leak from a scan or checkpoint.
        return jnp.zeros(spec.shape, spec.dtype)

    def step_key(self) -> jax.Array:
        return jax.random.key(0, impl="threefry2x32")


class _ApplyingScope(Scope):
    def __init__(
        self,
        variables: Mapping[str, Any],
        model_state: Mapping[str, Any],
        *,
        mode: str,
        key: jax.Array | Callable[[], jax.Array] | None,
        specs: Mapping[str, VariableSpec],
    ) -> None:
        super().__init__(mode=mode, specs=specs, padded=False, fresh=False)
        self._variables = variables
        self._model_state = model_state
        self._key = key

    @property
    def new_model_state(self) -> dict[str, Any]:
        after = {**self._model_state, **self._written}
        check_model_state(self._model_state, after)
        return after

    def first_value(self, spec: VariableSpec) -> Any:
        values = self._variables if spec.trainable else self._model_state
        if spec.name not in values:
            raise_absent(spec.name, self.mode, [*self._variables, *self._model_state])
        value = values[spec.name]
        if value.shape != spec.shape or value.dtype != spec.dtype:
            raise VariableError(
                f"Variable {spec.name!r} is {_kind_of(spec)} in model_fn, but its value is {_kind_of(value)}."
            )
        return value

    def step_key(self) -> jax.Array:
        if self._key is None:
            raise VariableError(f"next_rng_key(): no random key is available in mode {self.mode!r}.")
        if not isinstance(self._key, jax.Array):
            self._key = self._key()
        return self._key


@contextlib.contextmanager
def declaring(
    known: Mapping[str, VariableSpec], *, mode: str, padded: bool = False, fresh: bool = False
) -> Generator[Scope]:
    """Opens the scope of a discovery trace. Use it inside the function passed to `jax.eval_shape`.

    Args:
        known: the variables declared before, by path: in other modes, or in an existing state.
        mode: the mode in which model_fn is called.
        padded: whether rows of the batch are padding.
        fresh: whether first values will be computed for the variables.

    Example:
        >>> import jax
        >>> from estimator_core._model.access import get_variable
        >>> def model(x):
        ...     with declaring({}, mode="train") as scope:
        ...         y = x @ get_variable("kernel", (3, 2))
        ...     model.specs = scope.specs
        ...     return y
        >>> jax.eval_shape(model, jax.ShapeDtypeStruct((4, 3), "float32")).shape
        (4, 2)
        >>> print(model.specs["kernel"])
        kernel: float32[3,2], trainable
    """
    with _activated(_DeclaringScope(mode=mode, specs=known, padded=padded, fresh=fresh)) as scope:
        yield scope


@contextlib.contextmanager
def applying(
    variables: Mapping[str, Any],
    model_state: Mapping[str, Any],
    *,
    mode: str,
    key: jax.Array | Callable[[], jax.Array] | None,
    specs: Mapping[str, VariableSpec],
) -> Generator[Scope]:
    """Opens the scope of a real trace, in the trace of the given values.

    Args:
        variables: the values of the trainable variables, by path.
        model_state: the values of the other variables, by path.
        mode: the mode in which model_fn is called.
        key: the random key of the step, or a function that makes it when it is first needed.
        specs: the variables that discovery has found.
    """
    with _activated(_ApplyingScope(variables, model_state, mode=mode, key=key, specs=specs)) as scope:
        yield scope


@contextlib.contextmanager
def nested_scope() -> Generator[None]:
    """Allows model_fn to call its model again inside the block, also inside `jax.grad` and `jax.lax.scan`.

    The calls use the variables that the model has declared so far. Their writes, named tensors and summaries are
    dropped.

    Raises:
        ModelFnError: called outside model_fn.

    Example:
        >>> from estimator_core._model.access import get_variable
        >>> with applying({"slope": jnp.float32(3)}, {}, mode="infer", key=None, specs={}):
        ...     model = lambda x: x * get_variable("slope", ())
        ...     y = model(2.0)
        ...     with nested_scope():
        ...         gradient = jax.grad(model)(2.0)
        >>> float(y), float(gradient)
        (6.0, 3.0)
    """
    outer = active_scope("nested_scope")
    values = {path: outer.first_value(spec) for path, spec in outer.met.items()}
    trainable = {path: value for path, value in values.items() if outer.met[path].trainable}
    state = {path: value for path, value in values.items() if path not in trainable}
    with applying(trainable, state, mode=outer.mode, key=outer.step_key, specs=outer.met):
        yield


def active_scope(called: str) -> Scope:
    """Returns the current scope.

    Raises:
        ModelFnError: called outside model_fn.
    """
    scope = _active.get()
    if scope is None:
        raise ModelFnError(
            f"{called} was called outside of model_fn. Variables, modules, keys and summaries exist only while "
            "the Estimator calls it."
        )
    return scope


def in_model_fn() -> bool:
    """Returns whether a model_fn is being called, so that variables and summaries can be declared."""
    return _active.get() is not None


def check_model_state(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Refuses a model state that has changed its form.

    Raises:
        VariableError: the form has changed. The message has a line for each path, shape or dtype that differs.
    """
    lines = [f"  - {path}: {_kind_of(before[path])} is gone" for path in before if path not in after]
    lines += [f"  + {path}: {_kind_of(after[path])} is new" for path in after if path not in before]
    lines += [
        f"  ! {path}: was {_kind_of(before[path])}, is now {_kind_of(after[path])}"
        for path in before
        if path in after and _kind_of(before[path]) != _kind_of(after[path])
    ]
    if lines:
        raise VariableError(
            "The model state must keep its paths, shapes and dtypes from step to step, but model_fn changed it:\n"
            + "\n".join(sorted(lines))
            + "\nGive values per batch a name with ec.tensor instead of keeping them as state."
        )


def raise_absent(path: str, mode: str, existing: Any) -> NoReturn:
    """Raises the error about a variable that a mode requests and the state lacks."""
    names = ", ".join(sorted(existing)[:20]) or "none"
    raise VariableError(
        f"model_fn asked for variable {path!r} in mode {mode!r}, but the state has no such variable (it has: "
        f"{names}). Only training adds "
        f"variables: declare {path!r} in TRAIN too, or correct its name."
    )


@contextlib.contextmanager
def _activated(scope: Scope) -> Generator[Scope]:
    token = _active.set(scope)
    try:
        with scope.separate_traces():
            yield scope
            scope.close()
    finally:
        _active.reset(token)


def _has_no_dtype(value: object) -> bool:
    return isinstance(value, bool | int | float) or bool(getattr(value, "weak_type", False))


def _kind_of(value: Any) -> str:
    return f"{np.dtype(value.dtype).name}[{','.join(map(str, value.shape))}]"
