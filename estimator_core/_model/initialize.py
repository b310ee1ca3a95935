"""Initial values of variables: one small compiled function of their initialisers and of random keys."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._jax_values import computed_by_host
from estimator_core._model.shared_programs import SharedJit
from estimator_core._model.variables import VariableSpec
from estimator_core.errors import VariableError

# The generator is fixed and does not depend on the configuration, because a resumed run must draw the same numbers.
_IMPLEMENTATION = "threefry2x32"


def path_hash(path: str) -> int:
    """Returns a 32-bit number that depends on the text alone, in every process and version of Python.

    Example:
        >>> path_hash("encoder/kernel")
        2750564309
    """
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=4).digest(), "little")


def seed_words(seed: int) -> tuple[int, int]:
    """Returns the low and high 32 bits of a seed.

    Example:
        >>> seed_words(2**32 + 7)
        (7, 1)
    """
    return seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF


def variable_key(words: object, path: str) -> jax.Array:
    """Returns the key of a variable's first value: a function of the seed and the path, not of what else is declared.

    Args:
        words: uint32[2], the low and high 32 bits of the seed.
        path: the path of the variable.

    Example:
        >>> import numpy as np
        >>> words = np.array(seed_words(1), np.uint32)
        >>> bool((variable_key(words, "a") == variable_key(words, "b")).all())
        False
    """
    return _numbered_key(words, path_hash(path))


def _numbered_key(words: object, number: Any) -> jax.Array:
    return jax.random.fold_in(_seed_key(words, "variables"), number)


def step_key(words: Any, step: Any) -> jax.Array:
    """Returns the key of a training step: a function of the seed and the step, so that a resumed run draws the same
    numbers.

    Args:
        words: uint32[2], the low and high 32 bits of the seed.
        step: the global step before the training step, a scalar.
    """
    return jax.random.fold_in(_seed_key(words, "steps"), step)


def named_key(key: jax.Array, name: str, count: int = 0) -> jax.Array:
    """Returns the `count`-th key of a name within a step."""
    return jax.random.fold_in(jax.random.fold_in(key, path_hash(name)), count)


def _seed_key(words: object, purpose: str) -> jax.Array:
    low_high = jnp.asarray(words, jnp.uint32)
    key = jax.random.wrap_key_data(low_high[::-1], impl=_IMPLEMENTATION)
    return jax.random.fold_in(key, path_hash(purpose))


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleValues:
    """Computes the first values of all variables of one module together.

    Args:
        path: the path of the module, from which its key is derived.
        compute: a function that computes the values from a key, by name within the module.
        on_host: whether `compute` must not be traced, and runs on the host.
    """

    path: str
    compute: Callable[[jax.Array], Mapping[str, Any]]
    on_host: bool = False

    def of(self, name: str) -> ModuleInitializer:
        """Returns the initialiser of one variable."""
        return ModuleInitializer(self, name)


@dataclass(frozen=True, eq=False)
class ModuleInitializer:
    """The initialiser of one variable of a module. `initialize` computes those of one module together.

    Args:
        module: the values of the whole module.
        name: the name of the variable within the module.
    """

    module: ModuleValues
    name: str

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: object) -> Any:
        """Computes the first value from the key of the module."""
        return self.module.compute(key)[self.name]


# The program runs once. On CPU, compiling it in full takes three times as long and returns the same bits.
_QUICK = {"xla_backend_optimization_level": 1}
#: Smaller groups of equal variables are computed with all others, because a separate program takes longer to compile.
FEWEST_ALIKE = 4


def initialize(
    specs: Mapping[str, VariableSpec], seed: int, *, out_shardings: Mapping[str, object] | None = None
) -> dict[str, jax.Array]:
    """Computes the first values of variables.

    A value depends on the seed and on the path and declaration of its variable, but not on other variables or their
    order.

    Args:
        specs: the variables, by path.
        seed: the random seed of the run, of which 64 bits are used.
        out_shardings: a sharding for each path. None: everything is on the default device.

    Returns:
        The values by path, in the order of `specs`.

    Raises:
        VariableError: an initialiser uses a value of the trace it was declared in, or returns another shape or dtype
            than declared.

    Example:
        >>> from estimator_core._model.variables import make_spec
        >>> specs = {"scale": make_spec("scale", (2,), jax.nn.initializers.ones)}
        >>> initialize(specs, seed=1)["scale"].tolist()
        [1.0, 1.0]
    """
    words = np.array(seed_words(seed), np.uint32)
    computed = {path: spec for path, spec in specs.items() if callable(spec.initializer) and not _is_on_host(spec)}
    groups = _alike(computed, out_shardings)
    grouped = {path for _, paths in groups for path in paths}
    others = {path: spec for path, spec in computed.items() if path not in grouped}
    places = None if out_shardings is None else {path: out_shardings[path] for path in others}
    try:
        values = _program(functools.partial(_first_values, others), places)(words) if others else {}
        for shape, paths in groups:
            place = None if out_shardings is None else out_shardings[paths[0]]
            draw = _program(functools.partial(_drawn, replace(computed[paths[0]], shape=shape)), place)
            for path in paths:
                values[path] = _first_rows(draw(words, np.uint32(path_hash(path))), computed[path].shape)
    except jax.errors.UnexpectedTracerError as error:
        raise _leak(computed, words) from error
    on_host = _first_values({path: spec for path, spec in specs.items() if _is_on_host(spec)}, words)
    return {
        path: values[path] if path in values else _placed(path, on_host.get(path, spec.initializer), out_shardings)
        for path, spec in specs.items()
    }


def _program(function: Callable[..., Any], places: object) -> Callable[..., Any]:
    options = _QUICK if jax.default_backend() == "cpu" else None
    if places is None:
        return SharedJit(function, compiler_options=options)
    return jax.jit(function, out_shardings=places, compiler_options=options)


def _alike(
    specs: Mapping[str, VariableSpec], places: Mapping[str, object] | None
) -> list[tuple[tuple[int, ...], list[str]]]:
    """Returns the shape to draw and the paths of each group of variables that one program can compute."""
    if len(specs) < FEWEST_ALIKE:
        return []
    from estimator_core._model.initial_value_groups import repeated

    return repeated(specs, places, FEWEST_ALIKE)


def _is_on_host(spec: VariableSpec) -> bool:
    return isinstance(spec.initializer, ModuleInitializer) and spec.initializer.module.on_host


def _first_values(specs: Mapping[str, VariableSpec], words: object) -> dict[str, Any]:
    modules: dict[str, Mapping[str, Any]] = {}
    values: dict[str, Any] = {}
    for path, spec in specs.items():
        initializer = spec.initializer
        assert callable(initializer)
        if isinstance(initializer, ModuleInitializer):
            module = initializer.module
            if module.path not in modules or initializer.name not in modules[module.path]:
                modules[module.path] = {
                    **modules.get(module.path, {}),
                    **module.compute(variable_key(words, module.path)),
                }
            values[path] = _checked(spec, modules[module.path][initializer.name])
        else:
            draw = functools.partial(_first, spec)
            first = draw if spec.memory is None else computed_by_host(draw)
            values[path] = _checked(spec, first(variable_key(words, path)))
    return values


def _first(spec: VariableSpec, key: jax.Array) -> Any:
    assert callable(spec.initializer)
    return spec.initializer(key, spec.shape, spec.dtype)


def _drawn(spec: VariableSpec, words: object, number: Any) -> Any:
    return _checked(spec, _first(spec, _numbered_key(words, number)))


def _first_rows(drawn: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Cuts the rows on the host, because XLA would compile a program for each shape."""
    return drawn if drawn.shape == shape else jnp.array(np.asarray(drawn)[: shape[0]], copy=True)


def _checked(spec: VariableSpec, value: Any) -> Any:
    if tuple(value.shape) != spec.shape or value.dtype != spec.dtype:
        raise VariableError(
            f"The initializer of variable {spec.name!r} returned {value.dtype}{list(value.shape)}, declared: "
            f"{spec.dtype}{list(spec.shape)}. "
            "It is called with (key, shape, dtype) and must return an array of that shape and dtype."
        )
    return value


def _placed(path: str, value: object, out_shardings: Mapping[str, object] | None) -> jax.Array:
    # A separate copy. On CPU, JAX may use a numpy array's memory in place, and the caller's array must never change.
    return (
        jnp.array(value, copy=True) if out_shardings is None else jax.device_put(np.array(value), out_shardings[path])
    )


def _leak(computed: Mapping[str, VariableSpec], words: object) -> VariableError:
    """Finds the variable whose initialiser carries a traced value, by trying each one, and returns the error."""
    for path, spec in computed.items():
        try:
            jax.jit(functools.partial(_first_values, {path: spec}))(words)
        except jax.errors.UnexpectedTracerError:
            return VariableError(
                f"The initializer of variable {path!r} uses a value that exists only while model_fn is traced: a "
                "first value must not depend "
                "on a batch or on another variable. Use a function of (key, shape, dtype), or a numpy array made "
                "outside model_fn."
            )
    return VariableError("An initializer uses a value that exists only while model_fn is traced.")
