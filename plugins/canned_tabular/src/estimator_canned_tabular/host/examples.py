"""The conversion of serialized tf.Examples to features of columns, for `estimator serve` and `estimator predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.dtypes import STRING
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.parsing import make_parse_example_spec
from estimator_core.export import (
    Feature,
    FixedLenFeature,
    HostProgram,
    ParsedFeature,
    ParseExamples,
    ServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
    example_class,
)

RECEIVER = "examples"
_KINDS = {"f": "float_list", "i": "int64_list", "u": "int64_list"}


class TabularExamples:
    """A host transform from serialized tf.Examples to features, including features with any number of values.

    Args:
        fixed: the features of a fixed shape by name, as `{"shape": [...], "dtype": "...", "default": ...}`.
        variable: the features with any number of values by name, as `{"dtype": "...", "width": ...}`. Shorter ones are
            padded with a value that columns ignore.

    Example:
        >>> import numpy as np
        >>> record = example_class()()
        >>> record.features.feature["word"].bytes_list.value.append(b"wide")
        >>> parse = TabularExamples({}, {"word": {"dtype": "string", "width": 2}})
        >>> parse.apply({"examples": np.array([record.SerializeToString()], object)})
        {'word': array([[b'wide', b'']], dtype=object)}
    """

    name, version = "tabular_examples", 1

    def __init__(self, fixed: Mapping[str, Mapping[str, Any]], variable: Mapping[str, Mapping[str, Any]]) -> None:
        self._fixed = {name: dict(spec) for name, spec in fixed.items()}
        self._variable = {name: dict(spec) for name, spec in variable.items()}
        specs = {
            name: FixedLenFeature(tuple(spec["shape"]), spec["dtype"], spec["default"])
            for name, spec in self._fixed.items()
        }
        self._parse = build_parsing_serving_input_receiver_fn(specs)().transforms[0] if specs else None

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"fixed": self._fixed, "variable": self._variable}

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of the transform. There are none."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the features of a batch of records (bytes, [batch]).

        Raises:
            InputError: a record cannot be read. The message names record and feature.
        """
        found = dict(self._parse.apply(batch)) if self._parse is not None else {}
        if not self._variable:
            return found
        records = [_features(record, row) for row, record in enumerate(batch[RECEIVER].reshape(-1).tolist())]
        for name, spec in self._variable.items():
            found[name] = _values(records, name, spec["dtype"], spec["width"])
        return found

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns a program with one operation, which parses the records."""
        parsed = dict(self._parse.program(features).operations[0].features) if self._parse is not None else {}
        parsed |= {
            name: ParsedFeature(shape=(spec["width"],), dtype=spec["dtype"], variable=True)
            for name, spec in self._variable.items()
        }
        return HostProgram(
            operations=(ParseExamples(input=RECEIVER, features=parsed),),
            outputs={name: name for name in parsed},
            features={name: Feature((None, *feature.shape), feature.dtype) for name, feature in parsed.items()},
        )


def columns_receiver_fn(
    feature_columns: Iterable[Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a serving_input_receiver_fn for requests of serialized tf.Examples with the features of columns.

    The export reads them under the name "examples". Its host transforms convert strings to ids.

    Args:
        feature_columns: the columns of the model. A feature with any number of values has as many places as the
            `max_values` of its column, or as many as training saw values.
        default_batch_size: a fixed batch size; None: any.

    Raises:
        ArgumentError: columns read one feature differently.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_hash_bucket, numeric_column
        >>> columns = [numeric_column("x"), categorical_column_with_hash_bucket("c", 9)]
        >>> columns_receiver_fn(columns)().features["c"]
        Feature(shape=(None, 1), dtype='string')

    Source: `tf.estimator.export.build_parsing_serving_input_receiver_fn`.
    """
    columns = list(feature_columns)
    return build_parsing_serving_input_receiver_fn(
        make_parse_example_spec(columns), default_batch_size, places=_places(columns)
    )


def _places(columns: Iterable[Any]) -> dict[str, int]:
    """Returns the number of places of the features whose columns limit the number of values."""
    found: dict[str, int] = {}
    for column in columns:
        most = getattr(column, "max_values", None)
        inner = getattr(column, "categorical_column", None)
        crossed = getattr(column, "crossed", None)
        if inner is not None:
            nested = _places([inner])
            if nested and (weight := getattr(column, "weight_feature_key", None)):
                nested[weight] = max(nested.values())
        elif crossed is not None:
            nested = _places(part for part in crossed if not isinstance(part, str))
            nested |= {part: most for part in crossed if isinstance(part, str) and most}
        else:
            nested = {column.key: most * getattr(column, "width", 1)} if most else {}
        for key, places in nested.items():
            found[key] = max(places, found.get(key, 0))
    return found


def _features(record: Any, row: int) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return example_class().FromString(bytes(record)).features.feature
    except (DecodeError, TypeError, ValueError) as error:
        raise FeatureColumnError(f"Record {row} is not a serialized tf.Example: {error}.") from error


def _values(records: list[Any], name: str, dtype: str, width: int) -> np.ndarray:
    kind = "bytes_list" if dtype == STRING else _KINDS[np.dtype(dtype).kind]
    missing: Any = {"bytes_list": b"", "int64_list": -1, "float_list": 0.0}[kind]
    made = np.full((len(records), width), missing, object if kind == "bytes_list" else dtype)
    for row, record in enumerate(records):
        found = record.get(name)
        if found is None or found.WhichOneof("kind") is None:
            continue
        if found.WhichOneof("kind") != kind:
            raise FeatureColumnError(
                f"Record {row}: feature {name!r} is of kind {found.WhichOneof('kind')}, not {kind}."
            )
        values = getattr(found, kind).value
        if len(values) > width:
            raise FeatureColumnError(
                f"Record {row}: feature {name!r} has {len(values)} values, more than {width}: give its column "
                "max_values=."
            )
        made[row, : len(values)] = values
    return made
