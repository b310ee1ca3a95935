"""How many steps one dispatch runs: as asked, as remembered, or as measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._cluster.together import chief_says, gather
from estimator_core._loop.dispatch import Dispatcher, Program, Stacking, shapes_of, single, stacked
from estimator_core.coordinator import ALONE, Coordinator

_log = logging.getLogger("estimator_core")
#: The batches a dispatch that are tried.
CANDIDATE = 20
#: Of a step that is not worth a trial: its dispatch costs little beside it.
SLOW_STEP_SECONDS = 2e-3
_WORTH_IT = 1.1
_REPEATS = 5


def choose(
    asked: int | Literal["auto"],
    remembered: int | None,
    dispatcher: Dispatcher,
    program: Callable[[int], Program],
    state: Any,
    peers: Coordinator = ALONE,
    measured: MutableMapping[Any, int] | None = None,
) -> int:
    """The number of steps per dispatch.

    "auto" tries 20 steps a dispatch on copies of the state and the first batches, which are put back. It takes them
    only where they are at least a
    tenth faster and give bitwise the same state as single steps. A resumed run uses what its checkpoint remembers, a
    further call with batches of the same shapes what was measured before.

    Args:
        asked: as in `RunConfig(steps_per_dispatch=...)`.
        remembered: what the interrupted call used, None if there was none.
        dispatcher: gives the first batches, and takes them back.
        program: the compiled function for a number of steps.
        state: of the run; not touched.
        peers: the processes; the first one's measurements decide.
        measured: what this program was measured to do best, by the shapes of its batches; read and added to.
    """
    if asked != "auto":
        return asked
    if remembered is not None:
        _log.info("steps_per_dispatch: %d, as before the interruption.", remembered)
        return remembered
    batches = dispatcher.take(CANDIDATE)
    try:
        if len(batches) < CANDIDATE or any(shapes_of(batches[0]) != shapes_of(batch) for batch in batches[1:]):
            _log.info(
                "steps_per_dispatch: 1, because the first %d batches are not all there, or differ in shape.", CANDIDATE
            )
            return 1
        known: MutableMapping[Any, int] = {} if measured is None else measured
        shapes = tuple(leaf.shape for leaf in jax.tree.leaves((batches[0].features, batches[0].labels)))
        if shapes in known:
            _log.info("steps_per_dispatch: %d, as measured before.", known[shapes])
        else:
            known[shapes] = _measure(batches, program, state, dispatcher.stack_arrays, peers)
        return known[shapes]
    finally:
        for batch in reversed(batches):
            dispatcher.push_back(batch)


def _measure(
    batches: list[Any], program: Callable[[int], Program], state: Any, stack_arrays: Stacking, peers: Coordinator
) -> int:
    one, many = program(1), program(CANDIDATE)
    group = stacked(batches, stack_arrays)
    assert group is not None
    worth_it, figures = is_worth_it(
        lambda: _run_single(one, jax.tree.map(jnp.copy, state), batches),
        lambda: many(jax.tree.map(jnp.copy, state), group.features, group.labels, group.weights)[0],
        peers,
    )
    count = CANDIDATE if worth_it else 1
    _log.info("steps_per_dispatch: %d (%s).", count, figures)
    return count


def is_worth_it(single: Callable[[], Any], grouped: Callable[[], Any], peers: Coordinator = ALONE) -> tuple[bool, str]:
    """Whether one dispatch beats 20 of single batches by a tenth and gives the same bits; and why, for the log.

    Args:
        single: computes 20 batches one by one.
        grouped: computes them in one dispatch; not called, and so not compiled, where it could not gain much.
        peers: the processes; the first one's measurements decide.
    """
    after_single = jax.block_until_ready(single())  # compiles, perhaps
    seconds = chief_says(peers, "seconds", _seconds(single))
    if seconds / CANDIDATE > SLOW_STEP_SECONDS:
        milliseconds = seconds / CANDIDATE * 1e3
        return False, f"a batch takes {milliseconds:.1f} ms, and dispatching it costs little beside that"
    after_group = jax.block_until_ready(grouped())
    # Taken in turn, and the best of each: one measurement on a busy machine would settle the matter by chance.
    times = [(_seconds(single), _seconds(grouped)) for _ in range(_REPEATS)]
    seconds, group_seconds = chief_says(peers, "seconds", [min(each) for each in zip(*times, strict=True)])
    figures = (
        f"{seconds / CANDIDATE * 1e6:.0f} microseconds a batch by itself, {group_seconds / CANDIDATE * 1e6:.0f} in a "
        f"dispatch of {CANDIDATE}"
    )
    if seconds < _WORTH_IT * group_seconds:
        return False, figures
    if not all(gather(peers, "same-bits", _same_bits(after_single, after_group))):
        return False, f'{figures}, but that changes the last bits; a number instead of "auto" takes them all the same'
    return True, f"{figures}, the same bits"


def _run_single(program: Program, state: Any, batches: list[Any]) -> Any:
    for batch in batches:
        dispatch = single(batch)
        state, _ = program(state, dispatch.features, dispatch.labels, dispatch.weights)
    return state


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - began


def _same_bits(one: Any, other: Any) -> bool:
    return all(
        a.tobytes() == b.tobytes()
        for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        for a, b in zip(_parts(left), _parts(right), strict=True)
    )


def _parts(leaf: Any) -> list[np.ndarray]:
    """The values of an array that this process holds."""
    return [np.asarray(shard.data) for shard in leaf.addressable_shards] if isinstance(leaf, jax.Array) else [leaf]
