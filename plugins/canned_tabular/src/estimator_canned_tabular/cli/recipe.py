"""The settings of a training that the command line leaves open: the number of rows decides."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TypeVar

from estimator_core.errors import ArgumentError

_T = TypeVar("_T")
_LARGE, _HUGE = 20_000, 200_000
#: The rows that training reads at most in a table of middle size. Each epoch counts again.
_SEEN = 400_000
#: The minimum and maximum number of steps between two evaluations of the validation rows.
_LEAST_STEPS, _MOST_STEPS = 50, 2_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The sizes, the optimizer and the end of one training.

    Attributes:
        hidden_units: the sizes of the hidden layers.
        dropout: the share of values that training drops.
        learning_rate, weight_decay: the arguments of AdamW.
        batch_size: the number of rows per step.
        epochs: the maximum number of passes over the training rows.
        patience: the number of evaluations without a lower validation loss after which training ends; 0: no validation
            rows, and all epochs.
        seed: the seed of initial values and of the order of rows.

    Example:
        >>> recipe = Recipe.of(argparse.Namespace(model="linear", epochs=3, patience=None), 500)
        >>> recipe.epochs, recipe.learning_rate, recipe.steps(500), recipe.steps_between_looks(500)
        (3, 0.02, 24, 56)
    """

    hidden_units: tuple[int, ...]
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    epochs: int
    patience: int
    seed: int = 0

    @classmethod
    def of(cls, args: argparse.Namespace, rows: int) -> Recipe:
        """Returns the requested settings, with the others suited to a table of this many rows.

        Raises:
            ArgumentError: an argument is impossible.
        """
        shallow = args.model in ("linear", "baseline")
        batch_size = 64 if rows < _LARGE else 256 if rows < _HUGE else 1024
        made = cls(
            hidden_units=_units(getattr(args, "hidden_units", None), rows),
            dropout=_given(args, "dropout", 0.1 if rows < _HUGE else 0.0),
            learning_rate=_given(args, "learning_rate", 0.02 if shallow else 0.003),
            weight_decay=_given(args, "weight_decay", 0.01 if rows < _HUGE else 0.0001),
            batch_size=_given(args, "batch_size", batch_size),
            epochs=_given(args, "epochs", min(max(_SEEN // max(rows, 1), 20), 200)),
            patience=_given(args, "patience", 10),
            seed=_given(args, "seed", 0),
        )
        for name in ("batch_size", "epochs"):
            if getattr(made, name) < 1:
                raise ArgumentError(f"--{name.replace('_', '-')} should be positive, given: {getattr(made, name)}.")
        for name in ("patience", "weight_decay"):
            if not 0 <= getattr(made, name) < math.inf:
                raise ArgumentError(
                    f"--{name.replace('_', '-')} should be finite and not negative, given: {getattr(made, name)}."
                )
        if not 0 < made.learning_rate < math.inf:
            raise ArgumentError(f"--learning-rate should be positive and finite, given: {made.learning_rate}.")
        return made

    def steps(self, rows: int) -> int:
        """Returns the number of steps of all epochs over this many training rows."""
        return -(-rows * self.epochs // self.batch_size)

    def steps_between_looks(self, rows: int) -> int:
        """Returns whole epochs of small tables, and parts of epochs of large ones."""
        epoch = max(-(-rows // self.batch_size), 1)
        return min(-(-_LEAST_STEPS // epoch) * epoch, _MOST_STEPS)

    def arguments(self) -> list[str]:
        """Returns the options of the command line that select these settings."""
        found = {
            "--hidden-units": ",".join(map(str, self.hidden_units)),
            "--dropout": f"{self.dropout:g}",
            "--learning-rate": f"{self.learning_rate:g}",
            "--weight-decay": f"{self.weight_decay:g}",
            "--batch-size": str(self.batch_size),
            "--epochs": str(self.epochs),
            "--patience": str(self.patience),
            "--seed": str(self.seed),
        }
        return [word for pair in found.items() for word in pair]


def _given(args: argparse.Namespace, name: str, otherwise: _T) -> _T:
    found = getattr(args, name, None)
    return otherwise if found is None else found


def _units(text: str | None, rows: int) -> tuple[int, ...]:
    if text is None:
        return (128, 64) if rows < _LARGE else (256, 128)
    try:
        return tuple(int(size) for size in text.split(",") if size)
    except ValueError as error:
        raise ArgumentError(f"--hidden-units should be integers separated by commas: {error}.") from error
