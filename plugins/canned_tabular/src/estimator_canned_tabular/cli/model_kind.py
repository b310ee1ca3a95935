"""The kind of model that a model_dir is for. Weights are found by name, so a part of a model could be mistaken for
it.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path

from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.recipe import Recipe
from estimator_canned_tabular.cli.schema import Schema, write_at_once
from estimator_core.checkpoint import all_checkpoints
from estimator_core.errors import ArgumentError

_FILE = "model.json"
#: Models without hidden layers.
SHALLOW = ("linear", "baseline")


def keep_kind(
    model_dir: Path, model: str, schema: Schema, recipe: Recipe, source: Path, rows: int, form: CsvForm
) -> str:
    """Writes the kind of model that a model_dir is for before its first step. Later calls compare their own with it.

    Returns:
        a warning for the user if the run began with other rows; otherwise an empty string.

    Args:
        model_dir: the directory of the run.
        model: the name of the model.
        schema: the schema of the columns.
        recipe: the settings of the training.
        source: the file with the rows.
        rows: the number of training rows.
        form: the form of CSV files.

    Raises:
        ArgumentError: the model_dir has weights of another model, other layers or other columns, or its run had other
            texts that mean no value.
    """
    path = model_dir / _FILE
    units = "" if model in SHALLOW else ",".join(map(str, recipe.hidden_units))
    if not all_checkpoints(str(model_dir)):
        begun = {"model": model, "hidden_units": units, "source": str(source), "rows": rows, **asdict(schema)}
        begun |= {"na_values": form.na_values}
        write_at_once(path, json.dumps(begun) + "\n")
    elif path.is_file():  # an older model_dir has no such file
        _compare(path, model, units, schema)
        _same_values(path, form)
        return _other_rows(path, source, rows)
    return ""


def _same_values(path: Path, form: CsvForm) -> None:
    held = json.loads(path.read_text(encoding="utf-8")).get("na_values")
    if held is not None and set(held) != set(form.na_values):  # an older model_dir does not record it
        begun = shlex.join(CsvForm(na_values=tuple(held)).told) or "no --na-values"
        raise ArgumentError(
            f"{path.parent} began with {begun}. Other --na-values would change its numbers. Give the same, or another "
            "--model-dir."
        )


def _other_rows(path: Path, source: Path, rows: int) -> str:
    """Returns a warning if the number of rows differs. The path is not compared, because a file may have been moved."""
    begun = json.loads(path.read_text(encoding="utf-8"))
    if begun.get("rows", rows) == rows:
        return ""
    return (
        f"other rows: {path.parent} began with {begun['rows']} training rows of {begun['source']}, but {source} has "
        f"{rows}. The test may hold rows that were trained on, and the last line repeats the training from the start"
    )


def _compare(path: Path, model: str, units: str, schema: Schema) -> None:
    held = Schema.read(path)
    said = json.loads(path.read_text(encoding="utf-8"))
    for option, name, wanted in (("--model", "model", model), ("--hidden-units", "hidden_units", units)):
        if said.get(name) != wanted:
            raise ArgumentError(
                f"{path.parent} holds a model of {option} {said.get(name)}, not {wanted}. Give another --model-dir, or "
                f"{option} {said.get(name)}."
            )
    names = [name for name in {**held.columns, **schema.columns} if held.columns.get(name) != schema.columns.get(name)]
    labels = [(one.classes, one.mean, one.scale) for one in (held, schema)]
    names += [] if labels[0] == labels[1] else [schema.label]
    if names:
        raise ArgumentError(
            f"{path.parent} holds a model with other columns: {', '.join(map(repr, names))} differs. "
            "Give another --model-dir, or the columns of the model."
        )
