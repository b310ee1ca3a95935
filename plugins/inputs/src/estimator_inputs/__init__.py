"""Inputs for estimator-core: files (CSV, JSON lines, Parquet, TFRecord, ArrayRecord), DataFrames, tf.Example records.

Each public name is imported when it is first used. `__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "array_record": ("array_record_input_fn",),
    "csv_input": ("csv_input_fn",),
    "examples.features": ("FixedLenFeature", "FixedLenSequenceFeature", "VarLenFeature"),
    "examples.message": ("example_class",),
    "examples.parse": ("ParseExample",),
    "examples.receiver": ("build_parsing_serving_input_receiver_fn",),
    "jsonl_input": ("jsonl_input_fn",),
    "keras_input": ("keras_input_fn",),
    "pandas_input": ("pandas_input_fn",),
    "parquet_input": ("parquet_input_fn",),
    "reading.epochs": ("NoRowsError",),
    "reading.file_input": ("FileInput",),
    "reading.options": ("ReadOptions",),
    "schema.contract": ("FeatureSchema", "Schema", "Seen"),
    "schema.learn": ("learn_schema",),
    "schema.validate": ("Anomaly", "Limits", "Validation", "validate"),
    "table_input": ("table_input_fn",),
    "tfrecord.framing": ("write_tfrecord",),
    "tfrecord.records": ("read_tfrecord",),
    "tfrecord_input": ("make_batched_features_dataset", "tfrecord_input_fn"),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
