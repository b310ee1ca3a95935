"""Errors of feature columns."""

from __future__ import annotations

from estimator_core.errors import InputError


class FeatureColumnError(InputError):
    """A batch that a feature column cannot read; the message names the feature and the row."""
