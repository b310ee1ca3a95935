"""The model card of an export: inputs, training data, metrics, versions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.export import ExportRequest, Feature
from estimator_core.summaries import read_eval_metrics

CARD = "MODEL_CARD.md"


def card_of(request: ExportRequest, format_name: str) -> str:
    """Returns a page in Markdown for the users of an export. `manifest.json` has the same content for programs.

    Args:
        request: the request for the export.
        format_name: the format of the export.

    Example:
        >>> request = ExportRequest(signatures={}, variables={}, global_step=7)
        >>> print(card_of(request, "stablehlo").splitlines()[0])
        # Model card
    """
    facts = request.provenance
    parts = [
        "# Model card",
        f"Step {request.global_step}, in the format {format_name}, with {_parameters(request)} parameters.",
        "## Intended inputs",
        _inputs(request),
        "## Data",
        _data(facts.get("training_saw") or {}),
        "## Metrics",
        _metrics(evaluations_of(facts.get("checkpoint"), request.global_step), request.global_step),
        "## Versions",
        _versions(facts),
    ]
    return "\n\n".join(parts) + "\n"


def evaluations_of(checkpoint: Any, step: int) -> dict[str, dict[str, Any]]:
    """Returns the recorded metrics of a step, by evaluation directory next to the checkpoint. Empty if there are none.

    Example:
        >>> evaluations_of(None, 3)
        {}
    """
    if not isinstance(checkpoint, str):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for parent in Path(checkpoint).parents[:2]:
        for recorded in sorted(parent.glob("eval*/metrics.jsonl")):  # a file may have such a name too
            metrics = read_eval_metrics(recorded.parent).get(step)
            if metrics:
                found[recorded.parent.name] = metrics
    return found


def _parameters(request: ExportRequest) -> str:
    return f"{sum(math.prod(value.shape) for value in request.variables.values()):,}"


def _inputs(request: ExportRequest) -> str:
    parts: list[str] = []
    for name, signature in request.signatures.items():
        raw = request.receiver if signature.method in ("predict", "classify", "regress") and request.receiver else None
        rows = [("input", *row) for row in _rows(raw or signature.inputs)]
        rows += [("output", *row) for row in _rows(signature.outputs)]
        text = f"Signature `{name}` ({signature.method}):\n\n{table(('', 'name', 'dtype', 'shape'), rows)}"
        if signature.class_names:
            text += f"\n\nClasses: {', '.join(map(cell, signature.class_names))}"
        parts.append(text)
    return "\n\n".join(parts) or "None."


def _rows(features: Mapping[str, Feature]) -> list[tuple[str, str, str]]:
    """Returns table rows of features. An unknown size, such as the size of the batch, is shown as `any`."""
    return [
        (str(name), feature.dtype, " x ".join("any" if size is None else str(size) for size in feature.shape))
        for name, feature in features.items()
    ]


def _data(seen: Mapping[str, Mapping[str, Any]]) -> str:
    if not seen:
        return "No training recorded its data."
    rows = [(name, str(facts.get("dtype", "")), str(facts.get("places", ""))) for name, facts in seen.items()]
    return f"Data seen in training:\n\n{table(('feature', 'dtype', 'values per example, at most'), rows)}"


def _metrics(found: Mapping[str, Mapping[str, Any]], step: int) -> str:
    if not found:
        return f"No evaluation of step {step} was recorded."
    rows = [
        (folder, name, str(value))
        for folder, metrics in found.items()
        for name, value in metrics.items()
        if isinstance(value, (int, float))
    ]
    return f"Of step {step}:\n\n{table(('evaluation', 'metric', 'value'), rows)}"


def _versions(facts: Mapping[str, Any]) -> str:
    rows = [(str(name), str(version)) for name, version in dict(facts.get("versions") or {}).items()]
    rows += [(one["distribution"], one["version"]) for one in facts.get("plugins") or () if "distribution" in one]
    text = table(("package", "version"), list(dict.fromkeys(rows)))
    return f"{text}\n\nCheckpoint: `{facts['checkpoint']}`" if facts.get("checkpoint") else text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Returns a Markdown table. It escapes markup in the names.

    Example:
        >>> print(table(("name",), [("a|b",)]))
        | name |
        |---|
        | a\|b |
    """
    lines = [head, *rows]
    texts = [f"| {' | '.join(map(cell, line))} |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(head), *texts[1:]])


def cell(text: Any) -> str:
    """Returns a text that stays within its cell and contains no markup."""
    plain = " ".join(str(text).split())
    return "".join(f"\\{letter}" if letter in "\\|`*_<[" else letter for letter in plain)
