"""Compares observed with expected values. Numbers agree to a relative 1e-5."""

import math
import re

import numpy as np

from tests.parity.rules import ANY

TRAINING_METRICS = ("mae", "label_mean")


def mismatches(expected, seen, where=""):
    """Yields a line for each place where ``seen`` differs from ``expected``."""
    if isinstance(expected, str) and expected == ANY:
        return
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key in sorted(set(expected) | set(seen)):
            if key not in expected or key not in seen:
                yield f"{where}.{key}: only {'seen' if key in seen else 'expected'}"
            else:
                yield from mismatches(expected[key], seen[key], f"{where}.{key}")
    elif (
        isinstance(expected, (list, tuple))
        and isinstance(seen, (list, tuple, np.ndarray))
        and len(expected) == len(seen)
    ):
        for index, (left, right) in enumerate(zip(expected, seen, strict=True)):
            yield from mismatches(left, right, f"{where}[{index}]")
    elif not _equal(expected, seen):
        yield f"{where}: expected {expected!r}, seen {seen!r}"


def _equal(expected, seen):
    if expected in ("nan", "inf", "-inf"):
        return (isinstance(seen, (float, np.floating)) and math.isclose(float(expected), seen)) or (
            expected == "nan" and math.isnan(seen)
        )
    if isinstance(expected, float) and isinstance(seen, (float, int, np.number)):
        return math.isclose(expected, float(seen), rel_tol=1e-5, abs_tol=1e-6)
    return (
        type(expected) is type(seen) and bool(expected == seen)
        if not isinstance(seen, np.generic)
        else expected == seen.item()
    )


def error_mismatch(expected, seen):
    """Returns a line if an error is missing, unexpected or of another kind. The wording of the message may differ."""
    if expected is None or seen is None:
        return None if expected is seen else f"error: expected {expected}, seen {seen}"
    return None if expected["type"] in seen["kinds"] else f"error: expected {expected}, seen {seen}"


def scenario_mismatches(expected, seen):
    """Returns all differences between the expected and the seen outcome of a scenario."""
    lines = []
    for index, (left, right) in enumerate(zip(expected["results"], seen["results"], strict=True)):
        for field in ("returned", "saves", "checkpoints", "latest_checkpoint", "trace"):
            lines += mismatches(left[field], right[field], f"call {index}.{field}")
        lines.append(error_mismatch(left["error"], right["error"]) or "")
    events = {
        folder: [
            [step, tag, None if folder == "." and tag in TRAINING_METRICS else value] for step, tag, value in points
        ]
        for folder, points in seen["events"].items()
    }
    lines += mismatches(_by_step(expected["events"]), _by_step(events), "events")
    lines += mismatches(expected["weights"], seen["weights"], "weights")
    return [line for line in lines if line]


def _by_step(events):
    """Sorts the points of each step by tag, because their order within a step has no meaning."""
    if events == ANY:
        return ANY
    return {folder: sorted(points, key=lambda point: (point[0], point[1])) for folder, points in events.items()}


def first_words(message):
    """Returns the first words of a message, by which people search for it. Text in brackets varies and is left out."""
    return [word.strip("`\",.:'") for word in re.sub(r"\([^)]*\)", "", message).split()[:3]]
