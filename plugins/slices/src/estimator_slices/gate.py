"""An exporter that exports only while no slice becomes worse."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import Exporter, ExportsInBackground, KnowsEvaluation, RehearsesExports, exports_in
from estimator_core.storage import draft_of
from estimator_slices.rows import SliceRow, by_name, rows_of

_log = logging.getLogger("estimator_slices")
_STATE = "slices.json"
#: The file with the values of an export that has begun. They become the state when the export is complete.
_BEGUN = "slices.begun.json"


class SliceGate:
    """Wraps another exporter, which is called only if no slice is much worse than at the last export.

    The metrics of the last export are kept in `<export_path>/slices.json`, across restarts. The first export must only
    reach `at_least`. The exporter is used in an EvalSpec with slices.

    Args:
        exporter: the wrapped exporter, which also makes its own decision.
        metric: the metric that is compared.
        largest_fall: the largest amount by which a slice may be worse than at the last export.
        higher_is_better: False for an error.
        at_least: the value that every slice must reach (an upper bound if lower is better). None: no bound.
        fewest: the smallest number of examples of a slice that counts. Smaller slices are ignored.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> class Never:
        ...     name = "never"
        ...
        ...     def export(self, *arguments):
        ...         return None
        >>> SliceGate(Never(), metric="accuracy", largest_fall=0.02).name
        'never'
    """

    def __init__(
        self,
        exporter: Exporter,
        *,
        metric: str,
        largest_fall: float,
        higher_is_better: bool = True,
        at_least: float | None = None,
        fewest: int = 30,
    ) -> None:
        if not callable(getattr(exporter, "export", None)):
            raise ArgumentTypeError(f"SliceGate needs an Exporter, given: {exporter!r}.")
        if not largest_fall >= 0 or math.isinf(largest_fall):
            raise ArgumentError(f"largest_fall must be a number of at least 0, given: {largest_fall!r}.")
        self._exporter = exporter
        self._metric, self._fall, self._at_least, self._fewest = metric, largest_fall, at_least, fewest
        self._sign = 1.0 if higher_is_better else -1.0
        #: The values to remember once the export is complete.
        self._pending: tuple[Path, dict[str, float]] | None = None

    @property
    def name(self) -> str:
        """The name of the wrapped exporter."""
        return self._exporter.name

    def used_in(self, eval_name: str | None) -> None:
        """Passes the name of the evaluation to the exporter."""
        if isinstance(self._exporter, KnowsEvaluation):
            self._exporter.used_in(eval_name)

    def rehearse(self, check: Callable[..., None]) -> None:
        """Makes the exporter check what it will export."""
        if isinstance(self._exporter, RehearsesExports):
            self._exporter.rehearse(check)

    def wait(self) -> str | None:
        """Waits for the exporter."""
        written = self._exporter.wait() if isinstance(self._exporter, ExportsInBackground) else None
        self._settle(exported=written is not None)
        return written

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Calls the exporter, and returns its result, or None if a slice is too bad.

        Raises:
            ArgumentError: the evaluation has no slices, or does not have the metric.
        """
        self.wait()
        rows = self._compared(eval_result)
        state = Path(export_path) / _STATE
        _take_over(state)
        problems = self._problems(rows, _read(state))
        if problems:
            _log.warning(
                "Exporter %s exports nothing at step %s: %s.",
                self.name,
                eval_result.get("global_step"),
                "; ".join(problems),
            )
            return None
        values = {name: float(row.metrics[self._metric]) for name, row in rows.items()}
        _write(state.with_name(_BEGUN), {"after": _newest(state.parent), "values": values})
        self._pending = state, values
        written = self._exporter.export(
            estimator, export_path, checkpoint_path, eval_result, is_the_final_export=is_the_final_export
        )
        if written is not None:
            self._settle(exported=True)
        return written

    def _settle(self, *, exported: bool) -> None:
        """Stores the pending values if the export was made, and removes them."""
        if self._pending is not None:
            state, values = self._pending
            if exported:
                _write(state, values)
            state.with_name(_BEGUN).unlink(missing_ok=True)
        self._pending = None

    def _compared(self, eval_result: Mapping[str, Any]) -> dict[str, SliceRow]:
        rows = rows_of(eval_result)
        if not rows:
            raise ArgumentError(
                f"Exporter {self.name!r}: SliceGate compares slices, but the evaluation has none. Give its EvalSpec "
                "slices=[...]."
            )
        value = rows[0].metrics.get(self._metric)
        if not isinstance(value, float):
            numbers = sorted(name for name, value in rows[0].metrics.items() if isinstance(value, float))
            raise ArgumentError(
                f"Exporter {self.name!r}: the evaluation has no number {self._metric!r} by slice. It has {numbers}."
            )
        return {name: row for name, row in by_name(rows).items() if row.examples >= self._fewest}

    def _problems(self, rows: Mapping[str, SliceRow], before: Mapping[str, float]) -> list[str]:
        found: list[str] = []
        for name, row in rows.items():
            value, old = row.metrics[self._metric], before.get(name)
            if math.isnan(value):
                found.append(f"{self._metric} of {name} is NaN")
            elif self._at_least is not None and self._sign * (value - self._at_least) < 0:
                found.append(f"{self._metric} of {name} is {value:.6g}, and the limit is {self._at_least:.6g}")
            elif old is not None and self._sign * (old - value) > self._fall:
                found.append(f"{self._metric} of {name} changed from {old:.6g} to {value:.6g}")
        return found


def _take_over(state: Path) -> None:
    """Stores the values of a complete export whose process was killed before it stored them."""
    begun = state.with_name(_BEGUN)
    try:
        said = json.loads(begun.read_text())
        exported, values = _newest(state.parent) > int(said["after"]), dict(said["values"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    if exported:
        _write(state, values)
    begun.unlink(missing_ok=True)


def _newest(directory: Path) -> int:
    """Returns the time of the newest export, or 0 if there is none."""
    return max((int(path.name) for path in exports_in(directory)), default=0)


def _read(path: Path) -> dict[str, float]:
    """Returns the values of the last export, or an empty dict without one or with a damaged file."""
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    sound = isinstance(values, dict) and all(isinstance(value, float) for value in values.values())
    return values if sound else {}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(json.dumps(values, indent=1))
