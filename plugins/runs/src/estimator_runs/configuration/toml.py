"""TOML with the line of every key. To find the lines, tomllib parses each statement separately."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_runs.configuration.layers import KeyPath, Layer, Origin, paths_of
from estimator_runs.configuration.problems import refused

_AT = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")


def read_toml(text: str, source: str, directory: Path) -> Layer:
    r"""Returns the settings of a TOML document.

    Args:
        text: the document.
        source: its name in messages.
        directory: the base of relative names in it.

    Raises:
        ConfigurationError: the text is not TOML.

    Example:
        >>> layer = read_toml("[a]\nb = 1\n", "x.toml", Path())
        >>> layer.values, layer.origins["a", "b"].line
        ({'a': {'b': 1}}, 2)
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        origin = Origin(source=source, line=line, directory=directory)
        said = _AT.sub("", str(error))
        raise refused(origin, f"this is not TOML: {said}.") from None
    except ValueError:  # Python limits the digits of numbers
        origin = Origin(source=source, directory=directory)
        raise refused(origin, "a number has too many digits.") from None
    origins: dict[KeyPath, Origin] = {}
    for path, line in toml_lines(text):
        origins.setdefault(path, Origin(source=source, line=line, directory=directory))
    return Layer(whole=Origin(source=source, directory=directory), values=values, origins=origins)


def toml_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yields the line at which each table, list and value of a valid document begins.

    A statement ends with the first line up to which it can be parsed alone. Outside of strings and brackets, a new line
    always ends it.
    """
    table: KeyPath = ()
    elements: Counter[KeyPath] = Counter()
    for statement, line in _statements(text):
        parsed = tomllib.loads(statement)
        if not statement.lstrip().startswith("["):
            for path in paths_of(parsed)[1:]:
                yield (*table, *path), line
            continue
        names = _names(parsed)
        table = _placed(names[:-1], elements)
        table = (*table, names[-1])
        if statement.lstrip().startswith("[["):
            yield table, line
            elements[table] += 1
        table = _placed(names, elements)
        for length in range(1, len(table) + 1):
            yield table[:length], line


def _statements(text: str) -> Iterator[tuple[str, int]]:
    lines: list[str] = []
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not lines:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            start = number
        lines.append(line)
        statement = "\n".join(lines)
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        lines = []
        yield statement, start


def _names(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names in the header of a table, which was parsed alone."""
    names: list[str] = []
    inner: Any = header
    while isinstance(inner, dict) and inner:
        ((name, inner),) = inner.items()
        names.append(name)
    return tuple(names)


def _placed(names: KeyPath, elements: Mapping[KeyPath, int]) -> KeyPath:
    """Returns the path of a table. Below lists of tables, it is in the last element of each."""
    path: KeyPath = ()
    for name in names:
        path = (*path, name)
        if path in elements:
            path = (*path, elements[path] - 1)
    return path
