"""Tests of schema files by their extension: the kind `schema`, its suite, and the package from `new-plugin`."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins
from estimator_inputs import FeatureSchema, Schema, Seen
from estimator_inputs.schema.format_suite import SchemaFormatSuite
from estimator_inputs.schema.toml_file import TomlSchema, parsed, written
from estimator_testing.cli.scaffold import write_package

SCHEMA = Schema(features={"x": FeatureSchema(name="x", kind="number", dtype="float32", seen=Seen(rows=3))})


class TestToml(SchemaFormatSuite):
    broken = "format = "

    def make(self) -> TomlSchema:
        return TomlSchema()


class Broken(TomlSchema):
    """A format that omits the lines that begin with one of `forget`."""

    def __init__(self, *forget: str) -> None:
        self.forget = forget

    def written(self, schema: Schema) -> str:
        return "\n".join(line for line in written(schema).splitlines() if not line.startswith(self.forget))


class Silent(TomlSchema):
    def parsed(self, text: str, path: str) -> Schema:
        return parsed(text or written(SCHEMA), path)


@pytest.mark.parametrize(
    ("made", "test", "arguments"),
    [
        (lambda: Broken("minimum ="), "test_keeps_each_feature", ("age",)),
        (lambda: Broken("label"), "test_keeps_the_whole", ()),
        (lambda: Broken("most_missing"), "test_keeps_types", ()),
        (lambda: Broken("dtype", "maximum"), "test_differences_are_kept", ()),
        (Silent, "test_what_is_broken_is_named", ()),
        (object, "test_is_a_schema_format", ()),
    ],
)
def test_the_suite_catches(made: type, test: str, arguments: tuple[str, ...]) -> None:
    suite = TestToml()
    suite.make = made
    with pytest.raises((AssertionError, ArgumentError, pytest.fail.Exception)):
        getattr(suite, test)(*arguments)


def test_no_plugin_has_the_extension(tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"no installed plugin reads schemas with this extension. Known extensions: .*toml"
    ):
        SCHEMA.write(tmp_path / "new" / "schema.yaml")
    assert not (tmp_path / "new").exists()
    SCHEMA.write(tmp_path / "schema")
    assert Schema.read(tmp_path / "schema") == SCHEMA


def test_a_plugin_has_the_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package("acme-form", "schema", tmp_path)
    source = tmp_path / "acme-form" / "src"
    (metadata := source / "acme_form-0.1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-form\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[estimator.plugins]\nacme_form = acme_form.plugin\n")
    monkeypatch.syspath_prepend(str(source))
    assert "acme_form" in Plugins().names("schema")
    SCHEMA.write(tmp_path / "schema.acme-form")
    assert (tmp_path / "schema.acme-form").read_text().startswith("{")
    assert Schema.read(tmp_path / "schema.acme-form") == SCHEMA
