"""The position of an input: saved with each checkpoint, and restored only into the input it came from."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from estimator_core.errors import InputError

_BYTES_KEY = "base64"


class InputPosition(NamedTuple):
    """How far an input has been read. A tuple rather than a dataclass because one is made for every batch.

    Attributes:
        fingerprint: which input this is: `"kind; name=value; ..."`. A position is restored only if it is equal.
        examples: examples read since the input began.
        batches: batches read since the input began.
        exhausted: whether the input has ended; the next call then starts it again.
        source_state: what `get_state` of the iterator returned: JSON or bytes; None for inputs that are counted.

    Example:
        >>> position = InputPosition("numpy; n=10", examples=8, batches=2)
        >>> InputPosition.from_json(position.to_json()) == position
        True
    """

    fingerprint: str
    examples: int = 0
    batches: int = 0
    exhausted: bool = False
    source_state: Any = None

    def to_json(self) -> dict[str, Any]:
        """The position as JSON values."""
        state = self.source_state
        if isinstance(state, bytes):
            state = {_BYTES_KEY: base64.b64encode(state).decode("ascii")}
        return {
            "fingerprint": self.fingerprint,
            "examples": self.examples,
            "batches": self.batches,
            "exhausted": self.exhausted,
            "source_state": state,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> InputPosition:
        """The position that `to_json` wrote.

        Raises:
            InputError: `value` is not an input position.
        """
        try:
            state = value["source_state"]
            if isinstance(state, Mapping) and set(state) == {_BYTES_KEY}:  # pyright: ignore[reportUnknownArgumentType]
                state = base64.b64decode(state[_BYTES_KEY])  # pyright: ignore[reportUnknownArgumentType]
            return cls(
                fingerprint=str(value["fingerprint"]),
                examples=int(value["examples"]),
                batches=int(value["batches"]),
                exhausted=bool(value["exhausted"]),
                source_state=state,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"This is not an input position: {value!r} ({error!r}). Read one from a checkpoint's input item."
            ) from error


def fingerprint_of(kind: str, **facts: object) -> str:
    """A readable fingerprint.

    Example:
        >>> fingerprint_of("numpy", n=10, shuffle=True)
        'numpy; n=10; shuffle=True'
    """
    return "; ".join([kind, *(f"{name}={value}" for name, value in facts.items())])


def difference(saved: str, current: str) -> str:
    """What differs between two fingerprints, in words.

    Example:
        >>> difference("numpy; n=10; seed=1", "numpy; n=12; seed=1")
        'n was 10 and is 12'
        >>> difference("numpy; n=10", "grain")
        'it was numpy and is grain'
    """
    old_kind, old = _facts(saved)
    new_kind, new = _facts(current)
    if old_kind != new_kind:
        return f"it was {old_kind} and is {new_kind}"
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} was {old.get(name, 'absent')} and is {new.get(name, 'absent')}" for name in names)


def _facts(fingerprint: str) -> tuple[str, dict[str, str]]:
    kind, *facts = fingerprint.split("; ")
    return kind, {name: value for name, _, value in (fact.partition("=") for fact in facts)}
