"""The test suite for schema formats."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.testing import Suite
from estimator_inputs.schema.contract import FeatureSchema, Schema, Seen
from estimator_inputs.schema.file_format import SchemaFormat

_SEEN = Seen(
    rows=100,
    missing=3,
    different=41,
    mean=0.1 + 0.2,
    deviation=1e-9,
    median=-1.5,
    edges=(-1.0, 0.25),
    shares=(0.5, 0.25, 0.25),
)
_FEATURES = (
    FeatureSchema(
        name="age", kind="number", dtype="float64", most_missing=0.125, minimum=-0.5, maximum=1e12, seen=_SEEN
    ),
    FeatureSchema(
        name="my port = [x]",
        kind="category",
        dtype="string",
        vocabulary=("Z\u00fcrich", 'say "hi"', "a,b", ""),
        seen=Seen(rows=100, different=4, counts={"Z\u00fcrich": 60, "a,b": 40}),
    ),
    FeatureSchema(name="on", kind="category", dtype="bool", vocabulary=(False, True), required=False),
    FeatureSchema(name="class", kind="category", dtype="int64", vocabulary=(3, -1, 2)),
    FeatureSchema(name="image", kind="other", dtype="uint8", shape=(None, 28, 3)),
    FeatureSchema(name="when", kind="time", dtype="int64", minimum=0.0),
    FeatureSchema(name="words", kind="text", dtype="string"),
)
_WHOLE = Schema(features={one.name: one for one in _FEATURES}, label="class")
_WRITE = """
import importlib, sys
found = importlib.import_module(sys.argv[1])
for part in sys.argv[2].split("."):
    found = getattr(found, part)
from estimator_inputs.schema.format_suite import _WHOLE
sys.stdout.write(found().written(_WHOLE).encode().hex())
"""


class SchemaFormatSuite(Suite):
    """Proves that a format keeps every part of a schema and names the errors in a file. A subclass defines `make`.

    Attributes:
        broken: a text that is not in the format.

    Example:
        >>> from estimator_inputs.schema.toml_file import TomlSchema
        >>> class TestToml(SchemaFormatSuite):
        ...     broken = "format = "
        ...
        ...     def make(self):
        ...         return TomlSchema()
    """

    broken: str

    def make(self) -> SchemaFormat:
        """Returns the format. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def test_is_a_schema_format(self) -> None:
        """The format has the methods of SchemaFormat."""
        assert isinstance(self.make(), SchemaFormat), f"{self.make()!r} lacks a method of SchemaFormat"

    @pytest.mark.parametrize("name", list(_WHOLE.features))
    def test_keeps_each_feature(self, name: str) -> None:
        """A feature of each kind is read back unchanged, with its statistics."""
        schema = Schema(features={name: _WHOLE.features[name]})
        assert self._again(schema) == schema

    def test_keeps_the_whole(self) -> None:
        """All features are read back in order, with the label."""
        found = self._again(_WHOLE)
        assert list(found.features) == list(_WHOLE.features)
        assert found == _WHOLE

    def test_keeps_types(self) -> None:
        """True, 1.0 and 1 stay different, and so do a tuple and a list."""
        found = self._again(_WHOLE)
        assert repr(found) == repr(_WHOLE)

    def test_differences_are_kept(self) -> None:
        """Schemas that differ in one field have different texts."""
        age = _WHOLE.features["age"]
        texts = {self.make().written(Schema(features={"age": age}))}
        changes = (
            {"kind": "time"},
            {"dtype": "float32"},
            {"required": False},
            {"most_missing": 0.25},
            {"minimum": None},
            {"maximum": 2.0},
            {"seen": replace(_SEEN, rows=99)},
        )
        for change in changes:
            texts.add(self.make().written(Schema(features={"age": replace(age, **change)})))
        texts.add(self.make().written(Schema(features={"age": age}, label="age")))
        assert len(texts) == len(changes) + 2

    def test_the_same_text_in_every_process(self) -> None:
        """A schema has the same text in every process, because files are compared and kept in repositories."""
        expected = self.make().written(_WHOLE)
        assert self.make().written(_WHOLE) == expected
        cls = type(self.make())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "77"}
        command = [sys.executable, "-c", _WRITE, cls.__module__, cls.__qualname__]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert bytes.fromhex(done.stdout).decode() == expected

    def test_what_is_broken_is_named(self) -> None:
        """An empty text and an unrelated text are refused. The message begins with the path."""
        for text in ("", self.broken):
            with pytest.raises(ArgumentError) as raised:
                self.make().parsed(text, "a/schema.file")
            assert str(raised.value).startswith("a/schema.file"), str(raised.value)

    def _again(self, schema: Schema) -> Schema:
        return self.make().parsed(self.make().written(schema), "schema.file")
