"""The declarations of estimator-inputs for estimator-core. They are imported at start-up, so keep this module light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component, Kind

ESTIMATOR_PLUGIN_API = (1, 1)

_INPUTS = {
    "csv": ("csv_input_fn", "Rows of CSV files, with types and defaults. Errors name the bad rows."),
    "jsonl": ("jsonl_input_fn", "Rows of files of JSON lines."),
    "parquet": ("parquet_input_fn", "Rows of Parquet files."),
    "tfrecord": ("tfrecord_input_fn", "tf.Examples of TFRecord files, without TensorFlow."),
    "pandas": ("pandas_input_fn", "Batches of a pandas DataFrame in memory."),
    "table": ("table_input_fn", "Batches of a table in memory: polars, Arrow, DuckDB, a database result."),
    "array_record": ("array_record_input_fn", "tf.Examples of ArrayRecord files, shuffled as a whole."),
}


def estimator_kinds() -> Sequence[Kind]:
    """Declares the kind of schema file formats."""
    return [
        Kind(
            name="schema",
            title="schema formats",
            contract="estimator_inputs.schema.file_format:SchemaFormat",
            target="a function whose call returns a SchemaFormat; its name is the extension of the files",
            suite="estimator_inputs.schema.format_suite:SchemaFormatSuite",
            scaffold="estimator_inputs:scaffold",
        )
    ]


def estimator_components() -> Sequence[Component]:
    """Declares an input per kind of file, an input for DataFrames, and the file format of schemas.

    The transform that parses requests of tf.Examples is declared too.
    """
    inputs = [
        Component(kind="input", name=name, target=f"estimator_inputs:{function}", summary=summary)
        for name, (function, summary) in _INPUTS.items()
    ]
    parse = Component(
        kind="transform",
        name="parse_example",
        target="estimator_inputs:ParseExample",
        summary="Features from serialized tf.Example records.",
    )
    toml = Component(
        kind="schema",
        name="toml",
        target="estimator_inputs.schema.toml_file:TomlSchema",
        summary="Schemas as TOML, which can be edited by hand.",
    )
    return [*inputs, parse, toml]


def estimator_commands() -> Sequence[Command]:
    """Declares the command `estimator inputs`."""
    return [
        Command(
            name="inputs",
            target="estimator_inputs.cli.inputs",
            summary="Show statistics of data, learn its schema, and find anomalies and drift in other data.",
        )
    ]
