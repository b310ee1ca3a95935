"""Adds clipping, accumulation and averaging to an optimizer, by name, for command lines and hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, Final

import optax

from estimator_core.errors import ArgumentError
from estimator_hooks.averaging.transformation import ema_of_weights

Transformation = optax.GradientTransformation | optax.GradientTransformationExtraArgs

#: Transformations of the gradients, applied before the optimizer.
_BEFORE: Final[dict[str, Callable[..., Any]]] = {
    "clip_by_global_norm": optax.clip_by_global_norm,
    "clip_by_value": optax.clip,
    "clip_by_block_rms": optax.clip_by_block_rms,
    "adaptive_clip": optax.adaptive_grad_clip,
    "zero_nans": optax.zero_nans,
    "centralize": optax.centralize,
}
#: Transformations of the updates of the optimizer.
_AFTER: Final[dict[str, Callable[..., Any]]] = {
    "ema_of_weights": ema_of_weights,
}
#: The transformation that wraps all others and the optimizer.
_AROUND: Final = "accumulate"

#: The effect of each name, as text.
GRADIENT_TRANSFORMATIONS: Final = MappingProxyType(
    {
        "clip_by_global_norm": "scales all gradients down to a global norm",
        "clip_by_value": "limits every gradient to [-value, value]",
        "clip_by_block_rms": "limits the root mean square of each variable's gradient",
        "adaptive_clip": "limits each gradient relative to its weights",
        "zero_nans": "replaces NaN in gradients by zero",
        "centralize": "subtracts the mean of each gradient",
        "ema_of_weights": "keeps an exponential moving average of the weights with that decay",
        "accumulate": "averages the gradients of that many steps and then updates once",
    }
)


def with_transformations(optimizer: Transformation, transformations: str | Iterable[str]) -> Transformation:
    """Returns an optimizer with named transformations around it.

    Transformations of gradients come first, in the given order, then the optimizer, then `ema_of_weights`.
    `accumulate=k` wraps all of them, so that clipping sees the accumulated gradient. (`RunConfig.accumulate_steps`
    splits one batch instead.)

    Args:
        optimizer: an optax optimizer.
        transformations: `"name"` or `"name=number"`, separated by semicolons, or a list of them. Names: see
            `GRADIENT_TRANSFORMATIONS`.

    Raises:
        ArgumentError: a name is unknown or occurs twice, or a number is missing, superfluous or unreadable.

    Example:
        >>> tx = with_transformations(optax.sgd(0.1), "clip_by_global_norm=1.0; accumulate=4")
        >>> isinstance(tx, optax.GradientTransformation)
        True

    Source: optax (`optax.clip_by_global_norm`, `optax.MultiSteps` and others).
    """
    given: dict[str, list[float]] = {}
    for item in transformations.split(";") if isinstance(transformations, str) else transformations:
        if item.strip():
            name, arguments = _parse(item)
            if name in given:
                raise ArgumentError(f"Gradient transformation {name!r} is given twice.")
            given[name] = arguments
    before = [_make(_BEFORE[name], name, arguments) for name, arguments in given.items() if name in _BEFORE]
    after = [_make(_AFTER[name], name, arguments) for name, arguments in given.items() if name in _AFTER]
    chained = optax.chain(*before, optimizer, *after) if before or after else optimizer
    if _AROUND not in given:
        return chained
    (steps,) = given[_AROUND] or (0.0,)
    if not (1 <= steps < math.inf) or steps != int(steps):
        raise ArgumentError(
            f"Gradient transformation 'accumulate' needs a number of steps, accumulate=4; given: {steps:g}"
        )
    return optax.MultiSteps(chained, int(steps)).gradient_transformation()


def _parse(item: str) -> tuple[str, list[float]]:
    name, has_value, text = (part.strip() for part in item.partition("="))
    if name not in GRADIENT_TRANSFORMATIONS:
        raise ArgumentError(f"Unknown gradient transformation {name!r}. Known: {sorted(GRADIENT_TRANSFORMATIONS)}.")
    try:
        return name, [float(text)] if has_value else []
    except ValueError:
        raise ArgumentError(f"Gradient transformation {item.strip()!r}: {text!r} is not a number.") from None


def _make(factory: Callable[..., Any], name: str, arguments: list[float]) -> Any:
    if name in ("clip_by_global_norm", "clip_by_value") and not all(number > 0 for number in arguments):
        raise ArgumentError(f"Gradient transformation {name!r} needs a number above 0; given: {arguments[0]:g}")
    try:
        return factory(*arguments)
    except TypeError:
        needs = "needs a number" if not arguments else "takes no number"
        raise ArgumentError(f"Gradient transformation {name!r} {needs}: it {GRADIENT_TRANSFORMATIONS[name]}.") from None
