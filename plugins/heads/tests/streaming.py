"""Runs a metric over batches."""

import functools

import jax
import numpy as np


def streamed(build, *columns, sizes=(64,), weights=None):
    """The value of a metric of columns cut into batches.

    Args:
        build: the function that returns the metric of one batch of each column (and of the weights, if any).
        *columns: arrays with the example as their first axis.
        sizes: batch sizes, taken in turn.
        weights: one a example, or None.
    """
    parts = columns if weights is None else (*columns, weights)
    # Not under jit: single operations are compiled once for all tests, but whole metrics would be compiled per test.
    metrics = [build(*batch) for batch in batches(parts, sizes)]
    return jax.device_get(functools.reduce(lambda left, right: left.merge(right), metrics)).compute()


def batches(columns, sizes):
    """Batches of the columns that contain all rows once, in order."""
    rows, start, turn = len(columns[0]), 0, 0
    while start < rows:
        end = start + sizes[turn % len(sizes)]
        yield tuple(np.asarray(column[start:end]) for column in columns)
        start, turn = end, turn + 1
