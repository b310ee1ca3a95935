"""Layers of settings: values, and the origin of each. Later layers override earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The path of a value: keys of tables, and positions in lists.
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of a value.

    Args:
        source: the name of a file as it was given, or "--set", or "default".
        line: the line in that file, from 1; None if there are no lines.
        directory: the base of relative names of code in the value.

    Example:
        >>> str(Origin(source="base.toml", line=3))
        'base.toml:3'
    """

    source: str
    line: int | None = None
    directory: Path = Path()

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The settings of one source.

    Args:
        whole: the origin of the layer as a whole.
        values: nested tables.
        origins: the origin of every table, list and value in it.
    """

    whole: Origin
    values: Mapping[str, Any]
    origins: Mapping[KeyPath, Origin]


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The result of merged layers.

    Args:
        values: the effective values.
        origins: the last origin of each value.
        whole: the origin of the last layer, for values without an origin.
        modules: the Python files that were run for it, by path. All references to a file as `file.py:name` share its
            state.
    """

    values: Mapping[str, Any]
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict[KeyPath, Origin])
    whole: Origin
    modules: dict[Path, Any] = field(default_factory=dict[Path, Any], compare=False, repr=False)

    def origin(self, path: KeyPath) -> Origin:
        """Returns the origin of a value, or of the table to which it would belong."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return self.whole


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Merges layers. Tables are merged key by key, and all other values are replaced.

    Args:
        layers: the layers, at least one. The last one wins.

    Example:
        >>> file, typed = Origin(source="a.toml", line=1), Origin(source="--set")
        >>> base = Layer(whole=file, values={"a": {"b": 1, "c": 2}}, origins={("a", "b"): file, ("a", "c"): file})
        >>> found = resolve([base, Layer(whole=typed, values={"a": {"c": 3}}, origins={("a", "c"): typed})])
        >>> found.values, str(found.origin(("a", "c")))
        ({'a': {'b': 1, 'c': 3}}, '--set')
    """
    values: dict[str, Any] = {}
    origins: dict[KeyPath, Origin] = {}
    for layer in layers:
        _merge(values, layer.values, (), layer, origins)
    return Resolved(values=values, origins=origins, whole=layers[-1].whole)


def _merge(
    into: dict[str, Any], values: Mapping[str, Any], at: KeyPath, layer: Layer, origins: dict[KeyPath, Origin]
) -> None:
    for key, value in values.items():
        path = (*at, key)
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value, path, layer, origins)
            continue
        for old in [old for old in origins if old[: len(path)] == path]:
            del origins[old]
        origins.update({new: origin for new, origin in layer.origins.items() if new[: len(path)] == path})
        into[key] = _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


def paths_of(value: Any, at: KeyPath = ()) -> list[KeyPath]:
    """Returns every path into a value, including the empty one.

    Example:
        >>> paths_of({"a": [1]})
        [(), ('a',), ('a', 0)]
    """
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, each in items for path in paths_of(each, (*at, key)))]


def name_of(path: KeyPath) -> str:
    """Returns a key in the form in which a user writes it.

    Example:
        >>> name_of(("hooks", 1, "name"))
        'hooks[1].name'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
