"""Options of the classification losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """Options of the cross entropy of a classification head.

    The loss of an example is `sum over classes of target * class_weight * (1 - probability)**focal_gamma *
    -log(probability)`; with the defaults, it is the plain cross entropy.

    Args:
        label_smoothing: s in [0, 1): targets become `target * (1 - s) + s / classes` (two classes for a sigmoid).
        focal_gamma: at least 0. Above 0, examples with confident predictions count less.
        class_weights: one weight of at least 0 per class: (negative, positive) for binary and multi-label heads. None:
            all 1.

    Raises:
        ArgumentError: a value is outside its range.

    Example:
        >>> LossOptions(label_smoothing=0.1, focal_gamma=2.0).class_weights is None
        True

    Source: Szegedy et al., "Rethinking the Inception Architecture", 2015 (smoothing); Lin et al., "Focal Loss for Dense
        Object Detection", 2017.
    """

    label_smoothing: float = 0.0
    focal_gamma: float = 0.0
    class_weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.label_smoothing < 1.0:
            raise ArgumentError(f"label_smoothing must be in [0, 1). Given: {self.label_smoothing}.")
        if not (self.focal_gamma >= 0.0 and math.isfinite(self.focal_gamma)):
            raise ArgumentError(f"focal_gamma must be at least 0 and finite. Given: {self.focal_gamma}.")
        if self.class_weights is not None:
            weights = tuple(float(weight) for weight in self.class_weights)
            if any(not (weight >= 0.0 and math.isfinite(weight)) for weight in weights):
                raise ArgumentError(f"class_weights must be at least 0 and finite. Given: {weights}.")
            object.__setattr__(self, "class_weights", weights)

    def check_classes(self, n_classes: int) -> None:
        """Refuses a wrong number of class weights.

        Raises:
            ArgumentError: there is not one weight per class.
        """
        if self.class_weights is not None and len(self.class_weights) != n_classes:
            raise ArgumentError(
                f"class_weights has {len(self.class_weights)} values for {n_classes} classes. Give one weight a class."
            )
