"""A schema as TOML. The file is easy to edit, and reading is strict."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import tomli_w

from estimator_core.errors import ArgumentError
from estimator_inputs.schema.contract import FEATURE_KINDS, FeatureSchema, Schema, Seen

FORMAT = "estimator-schema/1"
_HEAD = (
    "# The kind and the allowed values of each column. Edit [features.*]: kind, required, most_missing, minimum, "
    "maximum, vocabulary.\n"
    "# [seen.*] describes the rows that the schema was learned from.\n"
)
_ANY = "*"
#: The allowed types of the value of each key, and the name of these types in messages.
_NUMBER = ((int, float), "a number")
_COUNT = ((int,), "a whole number of at least 0")
_LIST = ((list,), "a list")
_FEATURE_KEYS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "kind": ((str,), "a string"),
    "dtype": ((str,), "a string"),
    "shape": _LIST,
    "required": ((bool,), "true or false"),
    "most_missing": _NUMBER,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "vocabulary": _LIST,
}
_SEEN_KEYS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "rows": _COUNT,
    "missing": _COUNT,
    "different": _COUNT,
    "mean": _NUMBER,
    "deviation": _NUMBER,
    "median": _NUMBER,
    "edges": _LIST,
    "shares": _LIST,
    "counts": ((dict,), "a table, [seen.NAME.counts]"),
}


def written(schema: Schema) -> str:
    """Returns the text of a schema."""
    top: dict[str, Any] = {"format": FORMAT}
    if schema.label is not None:
        top["label"] = schema.label
    top["features"] = {name: _feature_table(feature) for name, feature in schema.features.items()}
    top["seen"] = {name: _plain(feature.seen) for name, feature in schema.features.items()}
    return _HEAD + tomli_w.dumps(top)


def parsed(text: str, path: str) -> Schema:
    r"""Returns the schema of a text.

    Args:
        text: the content of a TOML file.
        path: the path of the file, for messages.

    Raises:
        ArgumentError: the text is not a valid schema. The message names line and key.

    Example:
        >>> parsed('format = "estimator-schema/1"\n[features.age]\nkind = "digit"', "schema.toml")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: schema.toml, line 3: features.age.kind is 'digit', but must be one of ...
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{path} is not TOML: {error}.") from error
    return _Reader(text, path).schema(data)


def _feature_table(feature: FeatureSchema) -> dict[str, Any]:
    table = _plain(feature)
    table["shape"] = [_ANY if size is None else size for size in feature.shape]
    return table


def _plain(record: FeatureSchema | Seen) -> dict[str, Any]:
    values = {one.name: getattr(record, one.name) for one in fields(record) if one.name not in ("name", "seen")}
    kept = {name: value for name, value in values.items() if value is not None and value not in ((), {})}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


class _Reader:
    """Reads the tables of one file. Its errors name the line."""

    def __init__(self, text: str, path: str) -> None:
        self._lines = text.splitlines()
        self._path = path

    def schema(self, data: Mapping[str, Any]) -> Schema:
        """Reads the whole schema."""
        for key in data:
            if key not in ("format", "label", "features", "seen"):
                raise self._error((key,), "is unknown. Known keys: format, label, features, seen")
        if data.get("format") != FORMAT:
            raise self._error(("format",), f"is {data.get('format')!r}, but must be {FORMAT!r}")
        given, seen = self._tables(data, "features"), self._tables(data, "seen")
        if not given:
            raise self._error(("features",), "is missing: name at least one column, [features.NAME]")
        for name in seen:
            if name not in given:
                raise self._error(("seen", name), f"has no matching table [features.{name}]")
        features = {name: self._feature(name, table, seen.get(name, {})) for name, table in given.items()}
        label = data.get("label")
        if label is not None and label not in features:
            raise self._error(("label",), f"is {label!r}, but the features are {', '.join(features)}")
        return Schema(features=features, label=label)

    def _tables(self, data: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
        tables: Any = data.get(key, {})
        if not isinstance(tables, Mapping):
            raise self._error((key,), f"must hold tables, [{key}.NAME]")
        for name, table in cast(Mapping[str, Any], tables).items():
            if not isinstance(table, Mapping):
                raise self._error((key, name), "must be a table")
        return dict(cast(Mapping[str, Any], tables))

    def _feature(self, name: str, table: Mapping[str, Any], seen: Mapping[str, Any]) -> FeatureSchema:
        here = ("features", name)
        self._check(here, table, _FEATURE_KEYS)
        if table.get("kind", FEATURE_KINDS[0]) not in FEATURE_KINDS:
            raise self._error((*here, "kind"), f"is {table['kind']!r}, but must be one of {', '.join(FEATURE_KINDS)}")
        for key in ("kind", "dtype"):
            if key not in table:
                raise self._error(here, f"lacks {key}")
        if not 0 <= table.get("most_missing", 0) <= 1:
            raise self._error((*here, "most_missing"), f"is {table['most_missing']}, but must be a share from 0 to 1")
        if table.get("minimum", -math.inf) > table.get("maximum", math.inf):
            raise self._error((*here, "minimum"), f"is {table['minimum']}, but maximum is {table['maximum']}")
        vocabulary = self._vocabulary(here, table)
        shape = tuple(None if size == _ANY else size for size in table.get("shape", ()))
        if any(size is not None and (type(size) is not int or size < 0) for size in shape):
            raise self._error((*here, "shape"), f"is {table['shape']}: sizes are whole numbers, or {_ANY!r} for any")
        plain = {key: value for key, value in table.items() if key not in ("shape", "vocabulary")}
        return FeatureSchema(name=name, shape=shape, vocabulary=vocabulary, seen=self._seen(name, seen), **plain)

    def _vocabulary(self, here: tuple[str, ...], table: Mapping[str, Any]) -> tuple[Any, ...]:
        words: tuple[Any, ...] = tuple(table.get("vocabulary", ()))
        key = (*here, "vocabulary")
        if table["kind"] == "category" and not words:
            raise self._error(here, 'is a category without a vocabulary: list its values, or set kind to "text"')
        wanted = {"bool": bool, "string": str}.get(table["dtype"], int)
        for word in words:
            if type(word) is not wanted:
                raise self._error(
                    key, f"holds {word!r}, but dtype {table['dtype']} has values of type {wanted.__name__}"
                )
        if len(set(words)) != len(words):
            twice = next(word for word in words if words.count(word) > 1)
            raise self._error(key, f"names {twice!r} twice")
        return words

    def _seen(self, name: str, table: Mapping[str, Any]) -> Seen:
        here = ("seen", name)
        self._check(here, table, _SEEN_KEYS)
        for word, count in table.get("counts", {}).items():
            if type(count) is not int or count < 0:
                raise self._error((*here, "counts", word), f"is {count!r}, but must be {_COUNT[1]}")
        for key in ("edges", "shares"):
            if any(type(value) not in (int, float) for value in table.get(key, ())):
                raise self._error((*here, key), "must hold numbers")
        edges, shares = table.get("edges", []), table.get("shares", [])
        if (edges or shares) and len(shares) != len(edges) + 1:
            raise self._error((*here, "shares"), f"has {len(shares)} numbers, but must have one more than edges")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        return Seen(**values)

    def _check(
        self, here: tuple[str, ...], table: Mapping[str, Any], keys: Mapping[str, tuple[tuple[type, ...], str]]
    ) -> None:
        for key, value in table.items():
            if key not in keys:
                raise self._error((*here, key), f"is unknown. Known keys: {', '.join(keys)}")
            types, called = keys[key]
            if type(value) not in types or (types == (int,) and value < 0):
                raise self._error((*here, key), f"is {value!r}, but must be {called}")

    def _error(self, keys: tuple[str, ...], what: str) -> ArgumentError:
        line = self._line_of(keys)
        return ArgumentError(f"{self._path}{f', line {line}' if line else ''}: {'.'.join(keys)} {what}.")

    def _line_of(self, keys: tuple[str, ...]) -> int | None:
        """Returns the line of a table or key in the layout of `written`, or None if a user changed the layout."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, start=1):
            if re.match(r"\s*\[", line) and (header := _keys_of(line.strip().strip("[]"))):
                table = header
                if table == keys:
                    return number
            elif table == keys[:-1] and "=" in line and _keys_of(line.split("=")[0]) == keys[-1:]:
                return number
        return None


def _keys_of(text: str) -> tuple[str, ...]:
    """Returns the parts of a dotted key, such as `features."my age"`."""
    try:
        found: Any = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(found, dict):
        (key,) = cast(dict[str, Any], found)
        keys.append(key)
        found = cast(dict[str, Any], found)[key]
    return tuple(keys)


class TomlSchema:
    """The component `toml` of the kind `schema`.

    Example:
        >>> TomlSchema().parsed('format = "estimator-schema/2"', "schema.toml")
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentError: schema.toml, line 1: format is 'estimator-schema/2', but must be ...
    """

    def written(self, schema: Schema) -> str:
        """Returns the text of a schema."""
        return written(schema)

    def parsed(self, text: str, path: str) -> Schema:
        """Returns the schema of a text.

        Raises:
            ArgumentError: the text is not a valid schema. The message names line and key.
        """
        return parsed(text, path)
