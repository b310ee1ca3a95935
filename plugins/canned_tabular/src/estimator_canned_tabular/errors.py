"""Errors of feature columns."""

from __future__ import annotations

from estimator_core.errors import InputError


class FeatureColumnError(InputError):
    """A feature column cannot read a batch. The message names the feature and the row."""
