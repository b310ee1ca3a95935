"""Suggestions of known names for a misspelt one, for the ends of messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Returns a question for the end of a message about an unknown name; "" if no known name is similar.

    Example:
        >>> did_you_mean("los", ["loss", "accuracy"])
        " Did you mean 'loss'?"
    """
    near = suggestion(name, known, "")
    return f" D{near[1:]}" if near else ""


def suggestion(name: object, known: Iterable[object], otherwise: str) -> str:
    """Returns a question with the most similar known name, or other words if no known name is similar.

    Example:
        >>> suggestion("los", ["loss", "accuracy"], "")
        "did you mean 'loss'?"
        >>> suggestion("size", ["loss", "accuracy"], "there are loss, accuracy")
        'there are loss, accuracy'
    """
    near = get_close_matches(str(name), map(str, known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise
