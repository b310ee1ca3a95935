"""What estimator-inputs declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 0)

_INPUTS = {
    "csv": ("csv_input_fn", "Rows of CSV files, with types, defaults and their bad rows named."),
    "jsonl": ("jsonl_input_fn", "Rows of files of JSON lines."),
    "parquet": ("parquet_input_fn", "Rows of Parquet files."),
    "tfrecord": ("tfrecord_input_fn", "tf.Examples of TFRecord files, without TensorFlow."),
    "pandas": ("pandas_input_fn", "Batches of a pandas DataFrame in memory."),
    "table": ("table_input_fn", "Batches of a table in memory: polars, Arrow, DuckDB, the answer of a database."),
    "array_record": ("array_record_input_fn", "tf.Examples of ArrayRecord files, shuffled as a whole."),
}


def estimator_components() -> Sequence[Component]:
    """One input for each kind of file and for DataFrames, and the transform that parses requests of tf.Examples."""
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
    return [*inputs, parse]


def estimator_commands() -> Sequence[Command]:
    """The command `estimator inputs`."""
    return [
        Command(
            name="inputs",
            target="estimator_inputs.cli.inputs",
            summary="Statistics of data, the schema it keeps to, and anomalies and drift of other data.",
        )
    ]
