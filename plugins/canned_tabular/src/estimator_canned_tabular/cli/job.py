"""One `estimator tabular train`: rows, estimator, evaluation, export."""

from __future__ import annotations

import argparse
import importlib.util
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

import estimator_core as ec
from estimator_canned_tabular.cli import features
from estimator_canned_tabular.cli.described import described
from estimator_canned_tabular.cli.schema import Schema, write_at_once
from estimator_canned_tabular.cli.table import counted, defaults_of, profiles_of, typed_input
from estimator_canned_tabular.models.baseline import baseline_model_fn
from estimator_canned_tabular.models.combined import dnn_linear_combined_model_fn
from estimator_canned_tabular.models.dcn import dcn_model_fn
from estimator_canned_tabular.models.deep import dnn_model_fn
from estimator_canned_tabular.models.linear import linear_model_fn
from estimator_core.errors import ArgumentError
from estimator_heads import BinaryClassHead, MultiClassHead, RegressionHead
from estimator_inputs import FileInput

_RATES = {"linear": 0.02, "baseline": 0.02}
_RATE = 0.001
_HELD_OUT = 10  # each so many rows, one is for the evaluation


@dataclass(frozen=True)
class Job:
    """What the arguments of the command came to.

    Attributes:
        args: as given.
        schema: of the columns.
        rows, held_out_rows: for training and for the evaluation.
        estimator: that is trained.
    """

    args: argparse.Namespace
    schema: Schema
    rows: int
    held_out_rows: int
    estimator: ec.Estimator

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Reads and checks everything, before any work is done: the whole file, in blocks.

        Raises:
            ArgumentError, InputError: naming file, line and column.
        """
        for name in ("batch_size", "epochs", "shuffle_rows"):
            if getattr(args, name) < 1:
                raise ArgumentError(f"--{name.replace('_', '-')} should be positive, given: {getattr(args, name)}.")
        path = args.columns or args.model_dir / "columns.json"
        inferred = args.columns is None and not path.is_file()
        if inferred:
            profiles = profiles_of(args.csv, args.on_error)
            leave_out = args.on_error == "skip"
            schema = Schema.inferred(profiles, args.label, (args.weight_column,), may_be_empty=leave_out)
            for line in described(schema, profiles):
                print(line)
        else:
            schema = Schema.read(path)
        if schema.label != args.label:
            raise ArgumentError(f"{path} is of the label {schema.label!r}, not {args.label!r}.")
        rows, held_out_rows = _counts(args, schema)
        schema.write(args.model_dir / "columns.json")
        print(f"columns: {args.model_dir / 'columns.json'} ({'inferred' if inferred else 'as given'})")
        return cls(args, schema, rows, held_out_rows, _estimator(args, schema))

    def train(self) -> None:
        """All epochs, or what is left of them."""
        steps = -(-self.rows * self.args.epochs // self.args.batch_size)
        rows = _input(self.args, self.schema, shuffle=True, num_epochs=None, shuffle_buffer_size=self.args.shuffle_rows)
        self.estimator.train(_whole(rows), max_steps=steps)
        print(f"trained: {steps} steps on {self.rows} rows; {self.estimator.stop_reason}")

    def evaluate(self) -> None:
        """The held-out rows."""
        found = self.estimator.evaluate(_whole(_input(self.args, self.schema, held_out=True)))
        print(f"evaluated on {self.held_out_rows} rows:")
        for name, value in sorted(found.items()):
            if np.ndim(value) == 0:
                print(f"  {name} = {value:.6g}")

    def export(self) -> None:
        """A directory that takes raw rows."""
        receiver = ec.export.build_raw_serving_input_receiver_fn(features.received(self.schema))
        reading = self.args.model_dir / "reading.json"
        told = {"column_defaults": defaults_of(self.schema), "on_error": self.args.on_error}
        write_at_once(reading, json.dumps(told))
        path = self.estimator.export_saved_model(
            str(self.args.model_dir / "export"), receiver, assets_extra={"reading.json": str(reading)}
        )
        print(f"exported: {path}")


def _input(
    args: argparse.Namespace, schema: Schema, *, held_out: bool = False, shuffle: bool = False, **options: Any
) -> FileInput:
    """The rows of one part: every tenth is held out, or all of another file are."""
    apart = args.eval_csv is not None
    part: dict[str, Any] = {} if apart else {"hold_out_every": _HELD_OUT, "held_out": held_out}
    path = args.eval_csv if apart and held_out else args.csv
    common = {"seed": args.seed, "on_error": args.on_error}
    return typed_input(path, schema, args.weight_column, args.batch_size, shuffle=shuffle, **common, **part, **options)


def _whole(rows: FileInput) -> Any:
    """The size of batches is that of all processes together: the steps, and the numbers, are those of one."""
    return ec.inputs.from_iterable(rows, fresh_arrays=True, whole=True)


def _counts(args: argparse.Namespace, schema: Schema) -> tuple[int, int]:
    """How many rows are trained on, and how many evaluated; every row is looked at."""
    everything = typed_input(
        args.csv, schema, args.weight_column, args.batch_size, shuffle=False, on_error=args.on_error
    )
    found = counted(everything)
    if args.eval_csv is not None:
        return found.rows, counted(_input(args, schema, held_out=True)).rows
    if found.rows < _HELD_OUT:
        raise ArgumentError(f"{args.csv} has fewer than {_HELD_OUT} rows: give --eval-csv.")
    if found.bad:  # which rows of a block are held out depends on those that are left out
        return counted(_input(args, schema)).rows, counted(_input(args, schema, held_out=True)).rows
    held_out = found.rows // _HELD_OUT
    return found.rows - held_out, held_out


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
