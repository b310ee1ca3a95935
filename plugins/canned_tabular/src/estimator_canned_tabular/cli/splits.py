"""The division of the rows into those for training, those that decide when training ends, and those for the test."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.cli.table import typed_input
from estimator_inputs import FileInput

Part = Literal["training", "validation", "test"]
#: Of this number of neighbouring rows, one is for the test, and one more is for validation.
EVERY = 10


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The rows of a command, by part.

    Attributes:
        args: the arguments of the command.
        schema: the schema of the columns.
        batch_size: the number of rows per step.
        validated: whether there is a validation part.
    """

    args: argparse.Namespace
    schema: Schema
    batch_size: int
    validated: bool

    def rows(self, part: Part, *, shuffle: bool = False, **options: Any) -> FileInput:
        """Returns the input of a part. Every reading selects the same rows."""
        args = self.args
        apart = args.eval_csv is not None
        path = args.eval_csv if apart and part == "test" else args.csv
        places = self._places(part, apart)
        chosen: dict[str, Any] = {} if places is None else {"hold_out_every": EVERY, "held_out": places}
        common = {"seed": args.seed, "on_error": args.on_error, "shuffle": shuffle, "form": CsvForm.of(args)}
        return typed_input(path, self.schema, args.weight_column, self.batch_size, **common, **chosen, **options)

    def _places(self, part: Part, apart: bool) -> tuple[int, ...] | None:
        last = EVERY if apart else EVERY - 1
        if part == "test":
            return None if apart else (last,)
        if not self.validated:
            return None if apart else tuple(range(last))
        return (last - 1,) if part == "validation" else tuple(range(last - 1))


def whole(rows: FileInput) -> Callable[..., Any]:
    """Returns an input_fn whose batch size is the total of all processes, so they count the steps of one process."""

    def input_fn(*, config: Any = None) -> Any:
        found = rows(config=config)
        found.input_options = replace(found.input_options, whole=True)
        return found

    return input_fn
