"""Results of an evaluation with slices and counts, in the form of `metrics.jsonl`."""

from __future__ import annotations

import random
from typing import Any


def counts(shift: float) -> list[list[float]]:
    """Returns scores of 400 examples. A larger `shift` separates yes from no better."""
    draw = random.Random(3)
    table = [[0.0] * 100, [0.0] * 100]
    for number in range(400):
        answer = number % 2
        score = min(max(draw.gauss(0.5 + (shift if answer else -shift), 0.2), 0.0), 0.99)
        table[answer][int(score * 100)] += 1
    return table


def row(values: dict[str, Any], examples: int, accuracy: float, shift: float) -> dict[str, Any]:
    """Returns a slice."""
    return {
        "slice": values,
        "examples": examples,
        "metrics": {"accuracy": accuracy, "average_loss": 1 - accuracy, "report/scores": counts(shift)},
        "intervals": {"accuracy": [accuracy - 0.04, accuracy + 0.04]},
    }


def results() -> dict[int, dict[str, Any]]:
    """Returns the results of three checkpoints."""
    return {
        step: {
            "accuracy": 0.7 + step / 1000,
            "accuracy/sex=female": 0.9,
            "loss": 0.5 - step / 1000,
            "report/confusion": [[150.0, 50.0], [30.0, 170.0]],
            "report/scores": counts(0.2),
            "slices": [
                row({}, 400, 0.7 + step / 1000, 0.2),
                row({"sex": "female"}, 150, 0.9, 0.3),
                row({"sex": "male"}, 240, 0.6, 0.1),
                row({"sex": None}, 10, 0.7 + step / 1000, 0.2),
            ],
        }
        for step in (0, 50, 100)
    }
