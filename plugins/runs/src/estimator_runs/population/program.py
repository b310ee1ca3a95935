"""The common program of several runs: the training step of each is traced and compared, and one is mapped over all."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal, jaxpr_as_fun

from estimator_core.errors import ArgumentError
from estimator_core.inputs import Batch
from estimator_core.lowering import trace_step
from estimator_runs.population.member import Member

#: The names of primitives whose result under `vmap` differs from the result for each run alone.
_NOT_ALIKE = ("rng_bit_generator", "rng_uniform")
#: The number of programs whose ways are kept. The oldest is removed first.
_MOST = 8
#: The number of steps of one dispatch, if that is faster. This number of steps may be in progress when a signal comes.
STEPS = 4
#: The names of the ways that map the step over the runs, with one step per dispatch, and with `STEPS`.
TOGETHER, SEVERAL = "together", "together in fours"
_made: OrderedDict[Any, dict[str, Way]] = OrderedDict()
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Row(NamedTuple):
    """A batch of each run. All have the same shapes.

    Args:
        batches: the batches, one for each run.
        leaves: the arrays of each batch.
        tree: the tree structure of a batch.
        shapes: the shapes and dtypes of the arrays of one batch.
    """

    batches: Sequence[Batch]
    leaves: Sequence[Sequence[Any]]
    tree: Any
    shapes: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to make the steps of several runs.

    Args:
        enter: a function that converts the states of the runs, on the host, to the argument of `step`.
        step: a function of that argument and a batch for each run. It returns the argument after a step, and the
            results.
        each: a function that divides the result of `enter` or `step`, on the host, into a tree for each run.
        several: as `step`, for `STEPS` batches of each run. The results have a leading axis of steps. None: each step
            has its own dispatch.
    """

    enter: Callable[[Sequence[Any]], Any]
    step: Callable[[Any, Row], tuple[Any, Any]]
    each: Callable[[Any, int], Sequence[Any]]
    several: Callable[[Any, Sequence[Row]], tuple[Any, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """The training step of a member, traced for one shape of batches.

    Args:
        function: a function `(state, batch) -> (state, scalars by name)`.
        text: the program as text.
        constants: the digest of the arrays that the program contains, at any depth.
        form: the tree structures of the arguments and results.
    """

    function: Callable[[Any, Any], tuple[Any, dict[str, Any]]]
    text: str
    constants: str
    form: Any


def trace(member: Member, batch: Batch) -> Step:
    """Traces the training step of a member.

    Raises:
        ArgumentError: the step cannot be mapped over runs. The message names the member and the reason.
    """
    hooks: list[str] = []
    inner = member.estimator.model_fn

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = inner(features, labels, mode, config)
        hooks.extend(type(hook).__name__ for hook in (*spec.training_hooks, *spec.training_chief_hooks))
        return spec

    traced = trace_step(model_fn, member.estimator.config, batch, jax.devices()[:1]).traced
    closed, out_tree = traced.jaxpr, jax.tree.structure(traced.out_info)
    names = set(_primitives(closed.jaxpr))
    calls = sorted(name for name in names if "callback" in name or name == "debug_print")
    why = None
    if hooks:
        why = f"the hook {hooks[0]} of its EstimatorSpec sees the steps of one run"
    elif calls or closed.effects:
        why = f"its step calls the host ({', '.join(calls) or 'an effect'})"
    elif found := names.intersection(_NOT_ALIKE):
        why = f"random numbers of {found.pop()} differ from those of the run alone"
    if why is not None:
        raise ArgumentError(f"{member.name} cannot be trained together with others: {why}.")
    run = jaxpr_as_fun(closed)

    def function(state: Any, batch: Any) -> tuple[Any, dict[str, Any]]:
        state, outputs = jax.tree.unflatten(out_tree, run(*jax.tree.leaves((state, batch))))
        return state, {name: value for name, value in outputs.items() if getattr(value, "shape", None) == ()}

    digest = hashlib.sha256()
    for constant in _constants(closed):
        digest.update(_bytes(constant))
    text, form = _ADDRESS.sub("", str(closed.jaxpr)), (jax.tree.structure(traced.in_avals), out_tree)
    return Step(function=function, text=text, constants=digest.hexdigest(), form=form)


def common_step(members: Sequence[Member], batches: Sequence[Batch]) -> Step:
    """Returns the step of all members. Their programs must be equal: numbers may differ only in the optimizer's state.

    Raises:
        ArgumentError: a program differs. The message names the member and the first difference.
    """
    first = trace(members[0], batches[0])
    for member, batch in zip(members[1:], batches[1:], strict=True):
        other = trace(member, batch)
        if (first.text, first.constants) == (other.text, other.constants):
            continue
        pairs = zip(first.text.splitlines(), other.text.splitlines(), strict=False)
        mine, its = next(((a.strip(), b.strip()) for a, b in pairs if a != b), ("its constants", "others"))
        raise ArgumentError(
            f"{member.name} cannot be trained together with {members[0].name}: their programs differ, first in "
            f"{its[:80]!r} instead of {mine[:80]!r}. Numbers may differ only if the optimizer keeps them in its state: "
            "optax.inject_hyperparams(optax.adam)(learning_rate=...)."
        )
    return first


def ways(step: Step) -> dict[str, Way]:
    """Returns the ways to make a step of all runs. All compute the same.

    They map the step over the runs, with one or several steps per dispatch, or run the step for one run after the
    other. Steps of one program share their ways, which are compiled once.
    """
    key = step.text, step.constants, step.form
    if key not in _made:
        _made[key] = _ways(step)
        while len(_made) > _MOST:
            _made.popitem(last=False)
    return _made[key]


def _ways(step: Step) -> dict[str, Way]:
    over_runs = jax.vmap(step.function)
    mapped = jax.jit(over_runs, donate_argnums=0)
    scanned = jax.jit(lambda states, rows: jax.lax.scan(over_runs, states, rows), donate_argnums=0)
    single = jax.jit(step.function, donate_argnums=0)

    def stacked_step(states: Any, row: Row) -> tuple[Any, Any]:
        return mapped(states, jax.tree.unflatten(row.tree, _columns(row)))

    def stacked_steps(states: Any, rows: Sequence[Row]) -> tuple[Any, Any]:
        columns = [np.stack(column) for column in zip(*map(_columns, rows), strict=True)]
        return scanned(states, jax.tree.unflatten(rows[0].tree, columns))

    def unstacked(states: Any, count: int) -> list[Any]:
        return [jax.tree.map(lambda leaf, index=index: leaf[index, ...], states) for index in range(count)]

    def each_step(states: Sequence[Any], row: Row) -> tuple[Any, Any]:
        done = [single(state, arrays(batch)) for state, batch in zip(states, row.batches, strict=True)]
        return [state for state, _ in done], [values for _, values in done]

    return {
        TOGETHER: Way(enter=stacked, step=stacked_step, each=unstacked),
        SEVERAL: Way(enter=stacked, step=stacked_step, each=unstacked, several=stacked_steps),
        "apart": Way(enter=_on_device, step=each_step, each=lambda found, _: found),
    }


def stacked(trees: Sequence[Any]) -> Any:
    """Returns host arrays of several runs, stacked along a leading axis of runs."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _columns(row: Row) -> list[np.ndarray]:
    """Returns the arrays of a row, stacked along a leading axis of runs."""
    return [np.stack(column) for column in zip(*row.leaves, strict=True)]


def arrays(batch: Batch) -> Any:
    """Returns the parts of a batch that the step reads."""
    return batch.features, batch.labels, batch.weights


def _on_device(states: Sequence[Any]) -> list[Any]:
    return [jax.tree.map(jnp.array, state) for state in states]


def _primitives(jaxpr: Any) -> Iterator[str]:
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in _parameters(equation):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from _primitives(inner)


def _constants(found: Any) -> Iterator[Any]:
    """Yields the constants and literals of a program and of all programs within it, in the order of the text."""
    yield from getattr(found, "consts", ())
    jaxpr = getattr(found, "jaxpr", found)
    for equation in jaxpr.eqns:
        yield from _literals(equation.invars)
        for inner in _parameters(equation):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                yield from _constants(inner)
            elif isinstance(inner, np.ndarray | jax.Array):
                yield inner
    yield from _literals(jaxpr.outvars)


def _literals(variables: Sequence[Any]) -> Iterator[Any]:
    return (variable.val for variable in variables if isinstance(variable, Literal))


def _parameters(equation: Any) -> Iterator[Any]:
    """Yields the parameters of an equation, and the items of those that are tuples."""
    for value in equation.params.values():
        yield from value if isinstance(value, tuple | list) else (value,)


def _bytes(constant: Any) -> bytes:
    """Returns the kind, the shape and the values of a constant. For random keys, the values are their numbers."""
    dtype = getattr(constant, "dtype", None)
    keys = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    values = np.asarray(jax.random.key_data(constant) if keys else constant)
    return f"{values.dtype if dtype is None else dtype}{np.shape(constant)}".encode() + values.tobytes()
