"""The record of a variable: its name, shape, initial value, and the dtype of the computation."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core import _jax_values as jax_values
from estimator_core.errors import VariableError

#: The source of the first value of a variable: a function of (key, shape, dtype), or a host array.
Initializer: TypeAlias = Callable[[jax.Array, tuple[int, ...], np.dtype[Any]], Any] | np.ndarray

_PATH_PART = re.compile(r"[A-Za-z0-9_.\-]+")


@dataclass(frozen=True, eq=False)
class VariableSpec:
    """A variable as it was declared, without its value.

    Args:
        name: the path of the variable, such as `"encoder/layer_0/kernel"`.
        shape: the shape of the variable.
        dtype: the dtype of the variable, as JAX stores it.
        initializer: a function of `(key, shape, dtype)` that returns the first value, or that value as a host array.
        trainable: whether the variable is differentiated. Other variables are model state, which `set_variable` writes.
        sharding: the partition spec from the author of the module (one entry per axis); None without one.
        memory: the kind of memory for the variable and its optimizer slots, as named by JAX. None: the default memory
            of the device.

    Example:
        >>> import jax
        >>> spec = VariableSpec("dense/kernel", (2, 3), np.dtype("float32"), jax.nn.initializers.ones, True)
        >>> print(spec)
        dense/kernel: float32[2,3], trainable
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    initializer: Initializer
    trainable: bool
    sharding: Any = None
    memory: str | None = None

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"{self.name}: {self.dtype.name}[{shape}], {'trainable' if self.trainable else 'model state'}"

    def same_kind(self, other: VariableSpec) -> bool:
        """Returns whether both describe interchangeable arrays."""
        return (self.shape, self.dtype, self.trainable) == (other.shape, other.dtype, other.trainable)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


def make_spec(
    name: str,
    shape: Sequence[int] | None,
    initializer: object = None,
    dtype: object = None,
    trainable: bool = True,
    sharding: object = None,
) -> VariableSpec:
    """Checks a declaration and fills in its defaults.

    Raises:
        VariableError: the name, shape, dtype or initialiser cannot be used.
    """
    check_path(name)
    if not callable(initializer) and initializer is not None:
        return _spec_of_array(name, shape, initializer, dtype, trainable, sharding)
    if shape is None:
        raise VariableError(f"get_variable({name!r}) has no shape. Give one, or a numpy array as its initializer.")
    checked_shape = _check_shape(name, shape)
    checked_dtype = _check_dtype(name, np.float32 if dtype is None else dtype)
    tracer = _tracer_behind(initializer)
    if tracer is not None:
        raise VariableError(
            f"The initializer of variable {name!r} uses a traced value ({tracer}): a first value must not depend "
            "on a batch or on "
            "another variable. Use a function of (key, shape, dtype) or a numpy array made outside model_fn."
        )
    return VariableSpec(
        name,
        checked_shape,
        checked_dtype,
        initializer or _default_initializer(checked_shape, checked_dtype),
        bool(trainable),
        sharding,
    )


def check_path(name: object) -> None:
    """Refuses an invalid variable path.

    Raises:
        VariableError: the name is not a string of parts joined by `/`, each of letters, digits, `_`, `.` and `-`.
    """
    if not isinstance(name, str) or not name or not all(_PATH_PART.fullmatch(part) for part in name.split("/")):
        shown = repr(name) if isinstance(name, str) else f"A {type(name).__name__}"
        raise VariableError(
            f"{shown} cannot name a variable or scope. Names are strings of parts joined by '/', each made of letters, "
            "digits, '_', '.' and '-'; for example 'encoder/layer_0/kernel'."
        )


def conflict(known: VariableSpec, asked: VariableSpec) -> VariableError | None:
    """Returns the error of declaring a path twice with different properties; None if both agree."""
    if known.same_kind(asked):
        return None
    return VariableError(
        f"Variable {known.name!r} was declared as {str(known).split(': ')[1]}, here or in the checkpoint that is read, "
        f"and is now asked for as {str(asked).split(': ')[1]}. "
        "One path is one variable in every mode: use the same shape, dtype and trainable, or another name or "
        "ec.variable_scope. A checkpoint needs the model code that it was made with."
    )


def _spec_of_array(
    name: str, shape: Sequence[int] | None, value: object, dtype: object, trainable: bool, sharding: object
) -> VariableSpec:
    if jax_values.is_traced(value):
        raise VariableError(
            f"The initializer of variable {name!r} is a traced value. Arrays made with jax.numpy inside model_fn "
            "are traced: make it with "
            "numpy, make it outside model_fn, or give a function of (key, shape, dtype) such as "
            "jax.nn.initializers.ones."
        )
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        raise VariableError(
            f"The initializer of variable {name!r} is {value!r}; give an array or a function of (key, shape, dtype), "
            "such as jax.nn.initializers.ones."
        )
    checked_dtype = _check_dtype(name, array.dtype if dtype is None else dtype)
    if shape is not None and _check_shape(name, shape) != array.shape:
        raise VariableError(
            f"Variable {name!r} has shape {tuple(shape)} but its initializer is an array of shape {array.shape}."
        )
    return VariableSpec(
        name, array.shape, checked_dtype, array.astype(checked_dtype, copy=False), bool(trainable), sharding
    )


def _check_shape(name: str, shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in shape)
        exact = all(size == given for size, given in zip(sizes, shape, strict=True))
    except TypeError:
        sizes, exact = (), False
    if not exact or any(size < 0 for size in sizes):
        raise VariableError(
            f"Variable {name!r} has shape {shape!r}; a shape is a sequence of sizes, such as (3, 4) or ()."
        )
    return sizes


def _check_dtype(name: str, dtype: object) -> np.dtype[Any]:
    try:
        # float64 and int64 become the dtypes that JAX stores while x64 is off.
        return np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    except TypeError as error:
        raise VariableError(
            f"Variable {name!r} has dtype {dtype!r}, which no array of JAX can have. Use a dtype such as jnp.float32."
        ) from error


def _default_initializer(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Initializer:
    if len(shape) >= 2 and jax.numpy.issubdtype(dtype, jax.numpy.floating):
        return jax.nn.initializers.glorot_uniform()
    return jax.nn.initializers.zeros


def _tracer_behind(initializer: object) -> str | None:
    """Returns the name of a traced value that a function carries in its closure, defaults or bound arguments."""
    function = getattr(initializer, "func", initializer)
    carried: dict[str, Any] = {}
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            carried[name] = cell.cell_contents
        except ValueError:  # the cell is not filled yet
            continue
    carried.update(getattr(function, "__kwdefaults__", None) or {})
    carried.update(getattr(initializer, "keywords", None) or {})
    carried.update({f"argument {i}": value for i, value in enumerate(getattr(initializer, "args", ()))})
    carried.update({f"default {i}": value for i, value in enumerate(getattr(function, "__defaults__", None) or ())})
    return next((name for name, value in carried.items() if jax_values.is_traced(value)), None)


_FULL = np.dtype(np.float32)
_active: ContextVar[np.dtype[Any] | None] = ContextVar("estimator_core_compute_dtype", default=None)


@contextlib.contextmanager
def computing_in(dtype: np.dtype[Any] | None) -> Generator[None]:
    """Makes trainable float32 variables appear in another dtype inside the block. None leaves them unchanged.

    Differentiation includes the conversion, so gradients have the original dtype of the variables.
    """
    token = _active.set(dtype)
    try:
        yield
    finally:
        _active.reset(token)


def as_computed(spec: VariableSpec, value: Any) -> Any:
    """Returns the value of a variable for model_fn.

    Model state, such as running statistics, and variables outside the device memory keep their precision.
    """
    kept = not spec.trainable or spec.memory is not None
    return value if kept else reduced(value, _active.get())


def as_stored(spec: VariableSpec, value: Any) -> Any:
    """Returns a value that model_fn computed in the reduced dtype, for a variable of the model state."""
    dtype = _active.get()
    return value.astype(spec.dtype) if dtype is not None and value.dtype == dtype else value


def reduced(tree: object, dtype: np.dtype[Any] | None) -> Any:
    """Returns the float32 arrays of a tree in the dtype of the computation."""
    return tree if dtype is None else jax.tree.map(lambda leaf: _converted(leaf, _FULL, dtype), tree)


def restored(tree: object, dtype: np.dtype[Any] | None) -> Any:
    """Returns the arrays of a tree that were computed in the reduced dtype, as float32."""
    return tree if dtype is None else jax.tree.map(lambda leaf: _converted(leaf, dtype, _FULL), tree)


def _converted(leaf: object, source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    return jnp.asarray(leaf, target) if getattr(leaf, "dtype", None) == source else leaf
