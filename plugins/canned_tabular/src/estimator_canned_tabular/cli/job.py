"""The steps of `estimator tabular train`: rows, training, test, export."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_tabular.cli import features
from estimator_canned_tabular.cli.baselines import Tally, tallied
from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.described import described
from estimator_canned_tabular.cli.importance import check_possible, explained
from estimator_canned_tabular.cli.model_kind import SHALLOW, keep_kind
from estimator_canned_tabular.cli.models import model_fn_of
from estimator_canned_tabular.cli.recipe import Recipe
from estimator_canned_tabular.cli.schema import Schema, write_at_once
from estimator_canned_tabular.cli.splits import EVERY, Part, Parts, whole
from estimator_canned_tabular.cli.summary import table
from estimator_canned_tabular.cli.table import defaults_of, has_rows, profiles_of
from estimator_canned_tabular.cli.unknown_words import UnknownWords
from estimator_core.errors import ArgumentError
from estimator_core.plugins import default_plugins
from estimator_hooks import stop_if_no_decrease_hook

#: The rows are counted in batches of this size.
_COUNTED = 4096
#: The format of the export.
_FORMAT = "stablehlo"
#: The folder of the model_dir for the linear model of the comparison.
LINEAR = "linear_baseline"


@dataclass(frozen=True, kw_only=True)
class Job:
    """The steps of the command, with everything that its arguments determine.

    Attributes:
        args: the arguments as the user wrote them.
        schema: the schema of the columns.
        parts: the rows of training, validation and test.
        tallies: the labels of each part.
        recipe: the settings of the training.
    """

    args: argparse.Namespace
    schema: Schema
    parts: Parts
    tallies: Mapping[Part, Tally]
    recipe: Recipe

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Reads the whole file in blocks and checks everything before any work is done.

        Raises:
            ArgumentError, InputError: the arguments or the rows cannot be used. The message about a row names file,
                line and column.
            PluginLookupError: no package provides the format of the export.
        """
        if args.explain:
            check_possible()
        form = CsvForm.of(args)
        if args.shuffle_rows < 1:
            raise ArgumentError(f"--shuffle-rows should be positive, given: {args.shuffle_rows}.")
        place = next(each for each in (args.model_dir, *args.model_dir.absolute().parents) if each.exists())
        if not place.is_dir():
            raise ArgumentError(f"--model-dir: {place} is a file, not a directory.")
        if args.weight_column == args.label:
            raise ArgumentError(f"--weight-column and --label name the same column, {args.label!r}.")
        asked = Recipe.of(args, 0)  # refuse impossible settings before the rows are read
        path = args.columns or args.model_dir / "columns.json"
        inferred = args.columns is None and not path.is_file()
        schema = _inferred(args) if inferred else Schema.read(path)
        if schema.label != args.label:
            raise ArgumentError(f"{path} is for the label {schema.label!r}, not {args.label!r}.")
        parts = Parts(args=args, schema=schema, batch_size=_COUNTED, validated=asked.patience > 0)
        contract: Any = model_fn_of(args.model, schema, asked, args.weight_column, plots=False)
        parts, tallies = _tallied(parts, contract.data_contract)
        rows = sum(tallies[part].rows for part in tallies if part != "test")
        recipe = Recipe.of(args, rows)
        if not args.no_export:  # without its package, the export after the training would fail
            default_plugins().find("format", _FORMAT)
        told = keep_kind(args.model_dir, args.model, schema, recipe, args.csv, tallies["training"].rows, form)
        schema.write(args.model_dir / "columns.json")
        print(f"columns: {args.model_dir / 'columns.json'} ({'inferred' if inferred else 'as given'})")
        if told:
            print(told)
        parts = replace(parts, batch_size=recipe.batch_size)
        recipe = recipe if parts.validated else replace(recipe, patience=0)
        return cls(args=args, schema=schema, parts=parts, tallies=tallies, recipe=recipe)

    def train(self) -> dict[str, Any]:
        """Trains until the loss of the validation rows no longer falls, or for all epochs.

        Returns:
            The part of the JSON output for this step. The other steps return their parts, too.
        """
        estimator = self._trained(self.args.model, self.args.model_dir, self.recipe)
        rows = {part: self.tallies[part].rows for part in self.tallies}
        kept = f", {rows['validation']} for validation" if "validation" in rows else ""
        steps = int(Path(estimator.latest_checkpoint() or "0").name)
        print(f"trained: {steps} steps on {rows['training']} rows{kept}; {estimator.stop_reason}")
        return {"rows": rows, "steps": steps, "stop_reason": estimator.stop_reason}

    def evaluate(self) -> dict[str, Any]:
        """Evaluates the model, and the simpler ones, on the test rows, which nothing has read before."""
        plots = not self.args.no_plots
        found = self._tested(self.args.model, self.args.model_dir, self.recipe, plots=plots)
        test = self.tallies["test"]
        print(f"evaluated on {test.rows} rows:")
        for name, value in sorted(found.items()):
            print(f"  {name} = {value:.6g}")
        results = {self.args.model: found}
        if not self.args.no_baselines and self.args.model not in SHALLOW:
            results["linear"] = self._linear()
        results["majority" if self.schema.classes else "mean"] = self.tallies["training"].baseline(test)
        for line in table(results, classes=bool(self.schema.classes)):
            print(line)
        again = shlex.join(self._again())
        print(f"repeat: {again}")
        numbers = {
            model: {name: value if math.isfinite(value) else None for name, value in of_model.items()}
            for model, of_model in results.items()
        }
        return {"metrics": numbers, "repeat": again}

    def explain(self) -> dict[str, Any]:
        """Computes the importance of each column on the test rows."""
        metrics = ("accuracy", "auc", "average_loss") if self.schema.classes else ("average_loss",)
        estimator = self._estimator(self.args.model, self.args.model_dir, self.recipe)
        columns = list(features.received(self.schema))
        path, text = explained(estimator, whole(self.parts.rows("test")), columns, metrics)
        print(f"importance of the columns, on the test rows ({path}):")
        print(text)
        return {"importance": str(path)}

    def export(self) -> dict[str, Any]:
        """Exports the model to a directory that accepts raw rows."""
        receiver = ec.export.build_raw_serving_input_receiver_fn(features.received(self.schema))
        reading = self.args.model_dir / "reading.json"
        told = {"column_defaults": defaults_of(self.schema), "on_error": self.args.on_error}
        form = CsvForm.of(self.args)
        told |= {"na_values": form.na_values, "field_delim": form.field_delim}
        write_at_once(reading, json.dumps(told))
        estimator = self._estimator(self.args.model, self.args.model_dir, self.recipe)
        path = estimator.export_saved_model(
            str(self.args.model_dir / "export"), receiver, format=_FORMAT, assets_extra={"reading.json": str(reading)}
        )
        print(f"exported: {path}")
        return {"export": path}

    def _estimator(self, model: str, folder: Path, recipe: Recipe, *, plots: bool = False) -> ec.Estimator:
        model_fn = model_fn_of(model, self.schema, recipe, self.args.weight_column, plots=plots)
        every = recipe.steps_between_looks(self.tallies["training"].rows)
        looks: dict[str, Any] = {"save_checkpoints_steps": every} if recipe.patience else {}
        return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(folder), tf_random_seed=recipe.seed, **looks))

    def _trained(self, model: str, folder: Path, recipe: Recipe) -> ec.Estimator:
        estimator = self._estimator(model, folder, recipe)
        rows = self.tallies["training"].rows
        steps, every = recipe.steps(rows), recipe.steps_between_looks(rows)
        shuffled: dict[str, Any] = {"shuffle": True, "num_epochs": None, "shuffle_buffer_size": self.args.shuffle_rows}
        training = whole(self.parts.rows("training", **shuffled))
        if not recipe.patience:
            return estimator.train(training, max_steps=steps)
        stop = stop_if_no_decrease_hook(
            estimator,
            "average_loss",
            recipe.patience * every,
            eval_name="validation",
            run_every_steps=every,
            restore_best=True,
        )
        validation = ec.EvalSpec(whole(self.parts.rows("validation")), name="validation")
        ec.train_and_evaluate(estimator, ec.TrainSpec(training, max_steps=steps, hooks=[stop]), validation)
        return estimator

    def _tested(self, model: str, folder: Path, recipe: Recipe, *, plots: bool = False) -> dict[str, float]:
        estimator = self._estimator(model, folder, recipe, plots=plots)
        found = estimator.evaluate(whole(self.parts.rows("test")))
        return {name: float(value) for name, value in found.items() if np.ndim(value) == 0}

    def _linear(self) -> dict[str, float]:
        """Trains a linear model on the same rows, with settings that suit it, and tests it."""
        plain = argparse.Namespace(**{**vars(self.args), "model": "linear", "learning_rate": None})
        recipe = replace(Recipe.of(plain, self.tallies["training"].rows), patience=self.recipe.patience)
        self._trained("linear", self.args.model_dir / LINEAR, recipe)
        return self._tested("linear", self.args.model_dir / LINEAR, recipe)

    def _again(self) -> list[str]:
        args = self.args
        found: dict[str, Any] = {
            "--csv": args.csv,
            "--label": args.label,
            "--eval-csv": args.eval_csv,
            "--columns": args.model_dir / "columns.json",
            "--weight-column": args.weight_column,
            "--on-error": args.on_error,
            "--field-delim": args.field_delim,
            "--shuffle-rows": args.shuffle_rows,
            "--model": args.model,
            "--model-dir": f"{args.model_dir}-again",
        }
        given = [word for name, value in found.items() if value is not None for word in (name, str(value))]
        given += CsvForm.of(args).told
        return ["estimator", "tabular", "train", *given, *self.recipe.arguments()]


def _inferred(args: argparse.Namespace) -> Schema:
    profiles = profiles_of(args.csv, args.label, args.on_error, CsvForm.of(args), args.weight_column)
    leave_out = args.on_error == "skip"
    schema = Schema.inferred(
        profiles,
        args.label,
        (args.weight_column,),
        may_be_empty=leave_out,
        missing_category=args.missing_category,
    )
    for line in described(schema, profiles):
        print(line)
    if args.model != "baseline" and all(column.kind == "skip" for column in schema.columns.values()):
        raise ArgumentError(
            f"No column can predict the label {args.label!r}: all are left out. Add a column, or pass a "
            "columns.json with --columns."
        )
    return schema


def _tallied(parts: Parts, contract: Any) -> tuple[Parts, dict[Part, Tally]]:
    """Returns the parts with the tally of each. There is no validation part if it would have no rows."""
    args = parts.args

    if args.eval_csv is None and not has_rows(args.csv, EVERY, args.on_error, CsvForm.of(args)):
        raise ArgumentError(f"{args.csv} has fewer than {EVERY} rows, too few to hold out a test: give --eval-csv.")

    def of(parts: Parts, part: Part) -> Tally:
        words = UnknownWords(parts.schema)
        found = tallied(parts.rows(part), contract, args.model_dir, args.weight_column, words.look)
        for line in words.told(f"{part} rows"):
            print(line)
        return found

    tallies: dict[Part, Tally] = {"test": of(parts, "test")}
    if not tallies["test"].rows:
        where = args.eval_csv or args.csv
        few = "has no rows" if args.eval_csv else f"has fewer than {EVERY} rows: give --eval-csv"
        raise ArgumentError(f"{where} {few}.")
    if parts.validated:
        validation = of(parts, "validation")
        parts = replace(parts, validated=validation.rows > 0)
        tallies |= {"validation": validation} if validation.rows else {}
    return parts, {**tallies, "training": of(parts, "training")}
