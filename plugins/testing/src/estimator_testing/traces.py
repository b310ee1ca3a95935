"""Counts how often model_fn was traced within a block."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_core.estimator import Estimator


@contextmanager
def counting_traces(estimator: Estimator) -> Generator[dict[str, int]]:
    """Counts the traces of model_fn in the block, by mode and "discovery". The counts are complete after the block.

    Example:
        >>> import tempfile
        >>> from estimator_testing import tiny_estimator, tiny_input_fn
        >>> estimator = tiny_estimator(tempfile.mkdtemp()).train(tiny_input_fn(), steps=2)
        >>> with counting_traces(estimator) as traces:
        ...     estimator = estimator.train(tiny_input_fn(), steps=2)
        >>> traces
        {}
    """
    before = estimator.trace_counts
    traces: dict[str, int] = {}
    yield traces
    after = estimator.trace_counts
    traces.update({name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)})
