"""Where the input of each process stands, saved together and taken up by another number of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core._cluster.together import gather
from estimator_core._inputs import InputContext, InputPosition
from estimator_core.coordinator import Coordinator

_PARTS = "parts"


def positions_json(
    position: InputPosition | None, processes: Coordinator, pipelines: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """The position of a checkpoint: the chief's, and with several processes that of every part of the input."""
    own = None if position is None else position.to_json()
    if processes.count == 1:
        return own
    told = gather(processes, "position", own)
    parts = [told[members[0]] for members in pipelines]
    return None if parts[0] is None else {**parts[0], _PARTS: parts}


def position_of(saved: Mapping[str, Any], context: InputContext) -> InputPosition:
    """The position of one part of the input.

    Where the number of parts has changed, positions of inputs that count their examples are dealt out anew; others
    keep the fingerprint of their old part, so that the input says why it starts again.
    """
    parts: list[InputPosition] = [InputPosition.from_json(part) for part in saved.get(_PARTS) or [saved]]
    index, count = context.input_pipeline_id, context.num_input_pipelines
    if len(parts) == count:
        return parts[index]
    first, total = parts[0], sum(part.examples for part in parts)
    own = f"shard=0/{len(parts)}"
    evenly = len({part.examples for part in parts}) == 1 and total % count == 0
    counted = isinstance(first.source_state, int) and first.source_state == first.examples
    if not (evenly and counted and f"; {own};" in first.fingerprint and _stays_even(first, total, len(parts), count)):
        return first
    return first._replace(
        fingerprint=first.fingerprint.replace(f"; {own};", f"; shard={index}/{count};"),
        examples=total // count,
        source_state=total // count,
    )


def _stays_even(first: InputPosition, total: int, *counts: int) -> bool:
    """Whether parts are dealt like cards to the end of every epoch read so far."""
    facts = (fact.partition("=") for fact in first.fingerprint.split("; "))
    n = next((int(value) for name, _, value in facts if name == "n"), 0)
    return n > 0 and (total <= n or all(n % count == 0 for count in counts))
