"""What the command prints about a table before it trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from estimator_canned_tabular.cli.almost_numbers import almost_numbers
from estimator_canned_tabular.cli.ambiguous_dates import other_dates
from estimator_canned_tabular.cli.coarse_numbers import coarse_numbers
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema

#: A class with a smaller share of the rows is called rare.
_RARE = 0.1
_SHOWN = 10


def described(schema: Schema, profiles: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """Yields lines about columns that are left out or read as words, and about the frequency of the classes.

    Example:
        >>> profile = ColumnProfile()
        >>> profile.add([b"n"] * 19 + [b"y"])
        >>> list(described(Schema(label="bought", classes=("n", "y")), {"bought": profile}))
        ['classes: n 19 (95.0%), y 1 (5.0%)', "rare: y; always predicting 'n' would be right in 95.0% of the rows"]
    """
    unread = {name: profiles[name].unread for name in schema.columns if name in profiles and profiles[name].unread}
    for name, content in unread.items():
        yield f"left out: {name} holds {content}. Write one number or word per row into a separate column"
    left_out = [name for name, column in schema.columns.items() if column.kind == "skip" and name not in unread]
    skipped = [name if name.strip() else repr(name) for name in left_out]
    if skipped:
        yield (
            f"left out: {', '.join(skipped)} (identifiers, names, and columns with one value or without repeated "
            "values)"
        )
    yield from almost_numbers(schema, profiles)
    yield from other_dates(schema, profiles)
    yield from coarse_numbers(schema, profiles)
    if not schema.classes:
        return
    counts = dict.fromkeys(schema.classes, 0)
    for word, count in profiles[schema.label].words.items():
        name = schema.class_of(word)
        counts |= {name: counts[name] + count} if name in counts else {}
    rows = sum(counts.values())
    often = sorted(counts, key=lambda name: -counts[name])
    listed = ", ".join(f"{name} {counts[name]} ({counts[name] / rows:.1%})" for name in often[:_SHOWN])
    yield f"classes: {listed}{f' and {len(often) - _SHOWN} more' if len(often) > _SHOWN else ''}"
    rare = [name for name in often if counts[name] < _RARE * rows]
    if rare:
        share = counts[often[0]] / rows
        yield (
            f"rare: {', '.join(rare[:_SHOWN])}; always predicting {often[0]!r} would be right in {share:.1%} of the "
            "rows"
        )
