"""Which rows are trained on, which decide when training ends, and which are only tested."""

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
#: Of so many neighbouring rows one is tested, and one more is for validation.
EVERY = 10


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The rows of a command, by part.

    Attributes:
        args: of the command.
        schema: of the columns.
        batch_size: rows a step.
        validated: whether there is a validation part.
    """

    args: argparse.Namespace
    schema: Schema
    batch_size: int
    validated: bool

    def rows(self, part: Part, *, shuffle: bool = False, **options: Any) -> FileInput:
        """The rows of a part, which every reading finds again."""
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
    """The size of batches is that of all processes together: the steps, and the numbers, are those of one."""

    def input_fn(*, config: Any = None) -> Any:
        found = rows(config=config)
        found.input_options = replace(found.input_options, whole=True)
        return found

    return input_fn
