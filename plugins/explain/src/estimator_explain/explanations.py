"""The explanations of one checkpoint, stored as a file of the model_dir."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of
from estimator_explain.importance import Importance

FILE = "explanations.json"


@dataclass(frozen=True, kw_only=True)
class Explanations:
    """The influence of features on a model.

    Args:
        step: the global step of the checkpoint.
        importances: the importances of the features for each metric, see `permutation_importance`.
        strengths: the mean absolute attribution by feature, see `Attributions.strength`. Empty without attributions.
        residual: the residual of the attributions, see `Attributions.residual`.
    """

    step: int
    importances: Sequence[Importance]
    strengths: Mapping[str, float] = field(default_factory=dict[str, float])
    residual: float = 0.0

    @property
    def metrics(self) -> list[str]:
        """The metrics, in order."""
        return list(dict.fromkeys(one.metric for one in self.importances))


def write_explanations(model_dir: str | Path, explanations: Explanations) -> Path:
    """Writes `explanations.json` into a model_dir, and replaces an older one.

    A number that is not finite is a text, such as `"NaN"`, because JSON has no such numbers.

    Example:
        >>> import tempfile
        >>> one = Importance(features=("x",), metric="accuracy", baseline=0.9, losses=(0.2,))
        >>> folder = tempfile.mkdtemp()
        >>> write_explanations(folder, Explanations(step=5, importances=[one])).name
        'explanations.json'
        >>> read_explanations(folder).importances[0].mean
        0.2
    """
    path = Path(model_dir) / FILE
    with draft_of(path) as draft:
        draft.write_text(json.dumps(_spelled(asdict(explanations)), indent=1, allow_nan=False) + "\n")
    return path


def _spelled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _spelled(one) for name, one in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(one) for one in cast(Sequence[Any], value)]
    return json.dumps(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_explanations(model_dir: str | Path) -> Explanations | None:
    """Returns the explanations in a model_dir, or None if there are none.

    Raises:
        ArgumentError: the file does not hold explanations.
    """
    path = Path(model_dir) / FILE
    if not path.exists():
        return None
    try:
        given = json.loads(path.read_text())
        importances = [
            Importance(
                features=tuple(one["features"]),
                metric=one["metric"],
                baseline=float(one["baseline"]),
                losses=tuple(map(float, one["losses"])),
            )
            for one in given["importances"]
        ]
        strengths = {str(name): float(value) for name, value in given["strengths"].items()}
        step, residual = int(given["step"]), float(given["residual"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError(f"{path} does not hold explanations: {type(error).__name__}: {error}.") from error
    return Explanations(step=step, importances=importances, strengths=strengths, residual=residual)
