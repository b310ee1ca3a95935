"""A proof as text, and as a page for a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape

import numpy as np

from estimator_migration.proving.compare import Quantity
from estimator_migration.proving.proof import Proof

_STYLE = (
    "body{font-family:sans-serif}table{border-collapse:collapse}td,th{text-align:left;padding:1px 12px}"
    "tr.apart{background:#f8d0d0}"
)


def text_report(proof: Proof) -> str:
    """Returns the largest difference of every stage, and the first quantity that diverges."""
    counts = Counter(each.stage for each in proof.quantities)
    rows = [(each.stage, str(counts[each.stage]), f"{_size(each)} {each.name}".rstrip()) for each in proof.largest()]
    table = [("stage", "quantities", "largest difference"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(2)]
    lines = [f"{stage:<{widths[0]}}  {count:<{widths[1]}}  {largest}" for stage, count, largest in table]
    return "\n".join([*lines, verdict(proof)])


def verdict(proof: Proof) -> str:
    """Returns whether the programs agree, in one sentence."""
    steps = f"{proof.steps} step{'' if proof.steps == 1 else 's'}"
    if proof.drift is not None:
        closest = max(proof.led, key=lambda each: each.difference)
        return (
            f"The programs agree over {steps} within {proof.tolerance:g} ({proof.made_by}): each step from the same "
            f"weights, each update from the same gradients, and the results with the same weights. The largest "
            f"difference is {_size(closest)}, in {_where(closest)}. In a free run rounding grows to "
            f"{_size(proof.drift)}, in {_where(proof.drift)}."
        )
    if not proof.diverging:
        return f"The programs agree over {steps} within {proof.tolerance:g} ({proof.made_by})."
    first = proof.diverging[0]
    led = next((each for each in proof.led if not each.difference <= proof.tolerance), None)
    alone = (
        "" if led is None else f" In steps that each begin with the old weights, it is {_where(led)}, by {_size(led)}."
    )
    return (
        f"{len(proof.diverging)} of {len(proof.quantities)} quantities differ by more than {proof.tolerance:g} "
        f"({proof.made_by}). The first to diverge is {_where(first)}, by {_size(first)}.{alone}"
    )


def _where(quantity: Quantity) -> str:
    return f"{quantity.stage}: {quantity.name}" if quantity.name else quantity.stage


def html_page(proof: Proof) -> str:
    """Returns a self-contained page with every quantity in the order of the run."""
    head = "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>estimator migrate prove</title>"
    said = f"<style>{_STYLE}</style><h1>estimator migrate prove</h1><p>{escape(verdict(proof))}</p>"
    led = f"<h2>Steps that each begin with the old weights</h2>{_rows(proof, proof.led)}" if proof.led else ""
    return f"{head}{said}{_rows(proof, proof.quantities)}{led}</html>"


def _rows(proof: Proof, quantities: Iterable[Quantity]) -> str:
    rows = "\n".join(
        f'<tr class="{"same" if each.difference <= proof.tolerance else "apart"}"><td>{escape(each.stage)}</td>'
        f"<td>{escape(each.name)}</td><td>{escape(_size(each))}</td></tr>"
        for each in quantities
    )
    return f"<table><tr><th>stage</th><th>name</th><th>difference</th></tr>\n{rows}</table>"


def _size(quantity: Quantity) -> str:
    return f"{quantity.difference:.1e}" if np.isfinite(quantity.difference) else quantity.note or "NaN on one side"
