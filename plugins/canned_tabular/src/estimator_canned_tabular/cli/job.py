"""One `estimator tabular train`: rows, estimator, evaluation, export."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

import estimator_core as ec
from estimator_canned_tabular.cli import features
from estimator_canned_tabular.cli.rows import read_rows
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.models.baseline import baseline_model_fn
from estimator_canned_tabular.models.combined import dnn_linear_combined_model_fn
from estimator_canned_tabular.models.dcn import dcn_model_fn
from estimator_canned_tabular.models.deep import dnn_model_fn
from estimator_canned_tabular.models.linear import linear_model_fn
from estimator_core.errors import ArgumentError
from estimator_heads import BinaryClassHead, MultiClassHead, RegressionHead

_RATES = {"linear": 0.02, "baseline": 0.02}
_RATE = 0.001
_HELD_OUT = 10  # each so many rows, one is for the evaluation
Rows = tuple[dict[str, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Job:
    """What the arguments of the command came to."""

    args: argparse.Namespace
    schema: Schema
    training: Rows
    held_out: Rows
    estimator: ec.Estimator

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Reads and checks everything, before any work is done.

        Raises:
            ArgumentError: naming file, row and column.
        """
        for name in ("batch_size", "epochs"):
            if getattr(args, name) < 1:
                raise ArgumentError(f"--{name.replace('_', '-')} should be positive, given: {getattr(args, name)}.")
        rows = read_rows(args.csv)
        path = args.columns or args.model_dir / "columns.json"
        inferred = args.columns is None and not path.is_file()
        schema = Schema.inferred(rows, args.label, (args.weight_column,)) if inferred else Schema.read(path)
        if schema.label != args.label:
            raise ArgumentError(f"{path} is of the label {schema.label!r}, not {args.label!r}.")
        whole = _rows(schema, rows, args.weight_column, str(args.csv))
        if args.eval_csv is not None:
            training, held_out = whole, _rows(schema, read_rows(args.eval_csv), args.weight_column, str(args.eval_csv))
        else:
            held = np.arange(len(whole[1])) % _HELD_OUT == _HELD_OUT - 1
            training, held_out = _where(whole, ~held), _where(whole, held)
        if not len(held_out[1]):
            raise ArgumentError(f"{args.csv} has fewer than {_HELD_OUT} rows: give --eval-csv.")
        schema.write(args.model_dir / "columns.json")
        print(f"columns: {args.model_dir / 'columns.json'} ({'inferred' if inferred else 'as given'})")
        return cls(args, schema, training, held_out, _estimator(args, schema))

    def train(self) -> None:
        """All epochs, or what is left of them."""
        count = len(self.training[1])
        steps = -(-count * self.args.epochs // self.args.batch_size)
        self.estimator.train(self._input_fn(self.training, shuffle=True), max_steps=steps)
        print(f"trained: {steps} steps on {count} rows; {self.estimator.stop_reason}")

    def evaluate(self) -> None:
        """The held-out rows."""
        found = self.estimator.evaluate(self._input_fn(self.held_out, shuffle=False))
        print(f"evaluated on {len(self.held_out[1])} rows:")
        for name, value in sorted(found.items()):
            if np.ndim(value) == 0:
                print(f"  {name} = {value:.6g}")

    def export(self) -> None:
        """A directory that takes raw rows."""
        receiver = ec.export.build_raw_serving_input_receiver_fn(features.received(self.schema))
        print(f"exported: {self.estimator.export_saved_model(str(self.args.model_dir / 'export'), receiver)}")

    def _input_fn(self, rows: Rows, *, shuffle: bool) -> Any:
        return ec.inputs.numpy_input_fn(
            rows[0],
            rows[1],
            batch_size=self.args.batch_size,
            num_epochs=None if shuffle else 1,
            shuffle=shuffle,
            seed=self.args.seed,
        )


def _rows(schema: Schema, rows: Mapping[str, np.ndarray], weight_column: str | None, where: str) -> Rows:
    made = features.arrays(schema, rows, where)
    for name in (schema.label, *((weight_column,) if weight_column else ())):
        if name not in rows:
            raise ArgumentError(f"{where} lacks the column {name!r}. Columns: {', '.join(rows)}.")
    if weight_column:
        made[weight_column] = features.numbers(rows[weight_column], weight_column, where).astype(np.float32)
    labels = rows[schema.label]
    if not schema.classes:
        return made, features.numbers(labels, schema.label, where).astype(np.float32)
    unknown = ~np.isin(labels.astype(str), schema.classes)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ArgumentError(
            f"{where}, row {row + 1}, column {schema.label!r}: {labels[row]!r} is none of the classes "
            f"{', '.join(schema.classes)}."
        )
    return made, labels.astype(str)


def _where(rows: Rows, chosen: np.ndarray) -> Rows:
    return {name: array[chosen] for name, array in rows[0].items()}, rows[1][chosen]


def _estimator(args: argparse.Namespace, schema: Schema) -> ec.Estimator:
    try:
        units = [int(size) for size in args.hidden_units.split(",") if size]
    except ValueError as error:
        raise ArgumentError(f"--hidden-units should be integers with commas between: {error}.") from error
    head = _head(args, schema)
    adam = optax.adam(args.learning_rate or _RATES.get(args.model, _RATE))
    wide, deep = features.wide_columns(schema), features.deep_columns(schema)
    makers = {
        "linear": lambda: linear_model_fn(head, wide, adam),
        "dnn": lambda: dnn_model_fn(head, units, deep, adam, dropout=args.dropout),
        "dcn": lambda: dcn_model_fn(head, deep, hidden_units=units, optimizer=adam, dropout=args.dropout),
        "baseline": lambda: baseline_model_fn(head, adam),
        "dnn_linear_combined": lambda: dnn_linear_combined_model_fn(
            head, wide, adam, deep, adam, units, dnn_dropout=args.dropout
        ),
    }
    config = ec.RunConfig(model_dir=str(args.model_dir), tf_random_seed=args.seed)
    return ec.Estimator(makers[args.model](), config=config)


def _head(args: argparse.Namespace, schema: Schema) -> Any:
    if not schema.classes:
        return RegressionHead(weight_column=args.weight_column)
    options: dict[str, Any] = {
        "weight_column": args.weight_column,
        "label_vocabulary": list(schema.classes),
        "plots": not args.no_plots and importlib.util.find_spec("matplotlib") is not None,
    }
    return BinaryClassHead(**options) if len(schema.classes) == 2 else MultiClassHead(len(schema.classes), **options)
