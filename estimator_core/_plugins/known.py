"""Which distribution provides which component or command, for errors if one is not installed.

Nothing else reads `known.json`. `nox -s known` writes the file from what the packages of this repository declare.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

#: Where commands stand in the table. No kind of component has a hyphen in its name.
COMMANDS = "sub-commands"


def known_distribution(kind: str, name: str) -> str | None:
    """The distribution that provides a component of this kind, or of `COMMANDS`, and name, if it is a known one.

    Example:
        >>> known_distribution("backend", "gpu")
        'estimator-backends-gpu'
    """
    return _table().get(kind, {}).get(name)


def known_names(kind: str) -> tuple[str, ...]:
    """Names of the known components of a kind, or of `COMMANDS`, installed or not.

    Example:
        >>> known_names("adapter")
        ('equinox', 'keras', 'linen', 'nnx')
    """
    return tuple(_table().get(kind, {}))


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    """Distributions by kind and name of the component."""
    return json.loads(resources.files("estimator_core._plugins").joinpath("known.json").read_text(encoding="utf-8"))
