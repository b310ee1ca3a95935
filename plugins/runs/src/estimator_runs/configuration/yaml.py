"""YAML 1.2 with the line of every key, read with ruamel.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.layers import KeyPath, Layer, Origin
from estimator_runs.configuration.problems import refused

#: More values than a person writes. Aliases of aliases can represent any number of values.
_MOST_VALUES = 100_000
_SCALARS = ("str", "int", "float", "bool", "null")


def read_yaml(text: str, source: str, directory: Path) -> Layer:
    """Returns the settings of a YAML document, which has only plain values and no repeated key.

    Args:
        text: the document.
        source: its name in messages.
        directory: the base of relative names in it.

    Raises:
        ConfigurationError: the text is not YAML, or contains more than tables, lists, texts, numbers, booleans and
            nulls.
        ArgumentError: ruamel.yaml is not installed.
    """
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f'{source} is read with ruamel.yaml, which is not installed: pip install "estimator-runs[yaml]".'
        ) from error
    whole = Origin(source=source, directory=directory)
    loader = YAML(typ="safe", pure=True)
    try:
        node = loader.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise refused(
            Origin(source=source, line=line), f"this is not YAML: {error.problem or error.context}."
        ) from None
    except YAMLError as error:
        raise refused(whole, f"this is not YAML: {str(error).splitlines()[0]}.") from None
    if node is None:
        return Layer(whole=whole, values={}, origins={})
    origins: dict[KeyPath, Origin] = {}
    values = _Reader(loader.constructor, source, directory, origins).value(node, (), ())
    if not isinstance(values, dict):
        raise refused(whole, "a configuration is a table of keys and values.")
    return Layer(whole=whole, values=values, origins=origins)


class _Reader:
    """Converts nodes to values, and records their places."""

    def __init__(self, constructor: Any, source: str, directory: Path, origins: dict[KeyPath, Origin]) -> None:
        self._constructor, self._source, self._directory, self._origins = constructor, source, directory, origins
        self._count = 0

    def value(self, node: Any, path: KeyPath, outer: tuple[Any, ...], key_node: Any = None) -> Any:
        """Returns the value of a node. `outer` contains the nodes around it."""
        origin = self._origin(key_node or node)
        self._count += 1
        if node in outer or self._count > _MOST_VALUES:
            raise refused(origin, "an alias leads back to itself, or expands to too many values.")
        if path:
            self._origins[path] = origin
        kind = str(node.tag).rpartition(":")[2]
        if kind == "seq":
            return [self.value(each, (*path, place), (*outer, node)) for place, each in enumerate(node.value)]
        if kind == "map":
            return self._table(node, path, (*outer, node))
        if kind not in _SCALARS:
            raise refused(origin, f"{node.value!r} is read as a {kind}. Put it in quotes if it is a string.")
        try:
            return self._constructor.construct_object(node, deep=True)
        except (ValueError, KeyError, IndexError):
            raise refused(origin, f"{node.value:.60} is not a value of the type {kind}.") from None

    def _table(self, node: Any, path: KeyPath, outer: tuple[Any, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not str(key_node.tag).endswith(":str"):
                raise refused(self._origin(key_node), f"the key {key!r} is not a string. Put it in quotes.")
            if key in found:
                before = self._origins[(*path, key)].line
                raise refused(self._origin(key_node), f"the key {key!r} is already in line {before}.")
            found[key] = self.value(value_node, (*path, key), outer, key_node)
        return found

    def _origin(self, node: Any) -> Origin:
        return Origin(source=self._source, line=node.start_mark.line + 1, directory=self._directory)
