"""The contract of components of the kind `schema`: file formats for schemas, by file extension."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from estimator_core.errors import ArgumentError
from estimator_core.plugins import default_plugins

if TYPE_CHECKING:
    from estimator_inputs.schema.contract import Schema


@runtime_checkable
class SchemaFormat(Protocol):
    """Writes a schema as text and reads it back. A `-` in an extension is a `_` in the name of the component.

    Example:
        >>> from estimator_inputs.schema.toml_file import TomlSchema
        >>> isinstance(TomlSchema(), SchemaFormat)
        True
    """

    def written(self, schema: Schema) -> str:
        """Returns the text of a schema. Equal schemas have the same text."""
        ...

    def parsed(self, text: str, path: str) -> Schema:
        """Returns the schema of a text.

        Args:
            text: the text that `written` returned, possibly edited by a user or a program.
            path: the path of the file, for messages.

        Raises:
            ArgumentError: the text is not a valid schema. The message begins with the path.
        """
        ...


def format_of(path: str | Path) -> SchemaFormat:
    """Returns the format for the extension of a file. Without an extension, the format is TOML.

    Raises:
        ArgumentError: no plugin has a format for this extension.

    Example:
        >>> type(format_of("schema.toml")).__name__
        'TomlSchema'
    """
    name = Path(path).suffix.removeprefix(".").lower().replace("-", "_") or "toml"
    plugins = default_plugins()
    names = plugins.names("schema")
    if name not in names:
        raise ArgumentError(
            f"{path}: no installed plugin reads schemas with this extension. Known extensions: {', '.join(names)}."
        )
    made: SchemaFormat = plugins.get("schema", name)()
    return made
