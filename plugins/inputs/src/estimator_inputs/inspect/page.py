"""An inspection report as one HTML page, without scripts and without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from estimator_inputs.inspect.histogram import Bar, histogram_of
from estimator_inputs.inspect.report import LEVELS, Report
from estimator_inputs.inspect.words import different_of, missing_of, type_of
from estimator_inputs.statistics.record import ColumnStatistics

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a; }
section { border-top: 1px solid #d0d0d0; padding: 1rem 0; }
section { display: grid; grid-template-columns: 1fr 24rem; gap: 1.5rem; }
h2 { font-size: 1rem; margin: 0; } h2 small { font-weight: normal; color: #666; }
table { border-collapse: collapse; } td, th { padding: .1rem .8rem .1rem 0; text-align: left; font-weight: normal; }
th { color: #666; } td { font-variant-numeric: tabular-nums; } svg { width: 100%; height: auto; }
.missing { color: #b3261e; } pre { white-space: pre-wrap; }
@media (max-width: 50rem) { section { grid-template-columns: 1fr; } }
"""
_WIDTH, _HEIGHT = 384, 110


def page_of(report: Report) -> str:
    """Returns the page: the counts of the files, then a section for every column."""
    found = report.statistics
    which = "all" if found.all_rows else "the first"
    bad = f"<p class=missing>{found.bad_rows:,} bad rows:</p><pre>{escape(chr(10).join(found.bad))}</pre>"
    sections = "\n".join(_section(column) for column in found.columns.values())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Statistics of {found.rows:,} rows</title>\n"
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>Statistics of {which} {found.rows:,} rows</h1>\n"
        f"<p>{escape(report.kind)}, {report.files} file(s), {report.bytes:,} bytes, {len(found.columns)} columns</p>\n"
        f"{bad if found.bad_rows else ''}\n{sections}\n</body></html>\n"
    )


def _section(column: ColumnStatistics) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in _facts(column))
    bars = histogram_of(column)
    missing = f'<p class="missing">{escape(missing_of(column))}</p>' if column.missing else "<p>no value is missing</p>"
    return (
        f"<section><div><h2>{escape(column.name)} <small>{escape(type_of(column))}</small></h2>{missing}"
        f"<table>{rows}</table></div>{_picture(column.name, bars)}</section>"
    )


def _facts(column: ColumnStatistics) -> list[tuple[str, str]]:
    facts = [("different values", different_of(column))]
    if column.numbers is not None and column.minimum is not None and column.maximum is not None:
        facts += [("smallest, largest", f"{column.minimum:.6g}, {column.maximum:.6g}")]
        if column.mean is not None and column.deviation is not None:
            facts += [("mean, deviation", f"{column.mean:.6g}, {column.deviation:.6g}")]
        quantiles = column.numbers.quantiles(LEVELS)
        facts += [(f"{100 * level:g}%", f"{value:.6g}") for level, value in zip(LEVELS, quantiles, strict=True)]
        facts += [("zeros, infinite", f"{column.zeros:,}, {column.infinite:,}")]
        if column.rank_error:
            facts += [("ranks of quantiles", f"within {column.rank_error:.2%} of the values")]
    facts += [(str(word)[:60], f"{count:,}") for word, count in list(column.words.items())[:10]]
    if column.sizes is not None:
        facts += [("values per row", f"{column.sizes[0]} to {column.sizes[1]}")]
    return facts


def _picture(name: str, bars: Sequence[Bar]) -> str:
    if not bars:
        return "<div></div>"
    highest = max(bar.share for bar in bars) or 1.0
    width = _WIDTH / len(bars)
    drawn = "".join(
        f'<rect x="{place * width + 0.5:.1f}" y="{_HEIGHT - _HEIGHT * bar.share / highest:.1f}" '
        f'width="{max(width - 1, 0.5):.1f}" height="{_HEIGHT * bar.share / highest:.1f}" fill="#2a6f97">'
        f"<title>{escape(bar.name)}: {bar.share:.2%}</title></rect>"
        for place, bar in enumerate(bars)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 18}" role="img" aria-label="Histogram of {escape(name)}">{drawn}'
        f'<text x="0" y="{_HEIGHT + 14}" font-size="11">{escape(bars[0].name[:28])}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 14}" font-size="11" text-anchor="end">{escape(bars[-1].name[:28])}</text>'
        "</svg>"
    )
