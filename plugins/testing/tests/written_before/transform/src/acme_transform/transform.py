"""A host transform that scales a feature: data only, so that an export can carry it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.inputs.transforms import HostTransform


class AcmeTransformScale(HostTransform):
    """Replaces a feature by `(feature - mean) / deviation`.

    Args:
        feature: its name.
        mean: what becomes 0.
        deviation: what becomes 1.
    """

    name, version = "acme_transform", 1

    def __init__(self, feature: str, mean: float, deviation: float) -> None:
        self.feature = feature
        self.mean = mean
        self.deviation = deviation

    def config(self) -> Mapping[str, Any]:
        """The arguments."""
        return {"feature": self.feature, "mean": self.mean, "deviation": self.deviation}

    @property
    def files(self) -> Mapping[str, Path]:
        """None; a vocabulary would be one."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The batch with the feature scaled; nothing it was given is changed."""
        scaled = (batch[self.feature].astype(np.float32) - np.float32(self.mean)) / np.float32(self.deviation)
        return {**batch, self.feature: scaled}
