"""Exports when an evaluation beats all before it."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_exporters.exporters.base import SavedModelWriter

_STATE = "best.json"


def loss_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    """Whether the current loss is smaller.

    Raises:
        ArgumentError: there is no loss.
    """
    for name, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or "loss" not in result:
            raise ArgumentError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter:
    """Exports the model whenever an evaluation is better than every one before it, those of earlier processes included.

    The best result is kept in `<export_path>/best.json`; before there is one, the evaluations on record are compared.

    Args:
        name: its directory below `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        event_file_pattern: not used: results are read from the evaluation's own record, whatever its name.
        compare_fn: `(best_eval_result, current_eval_result) -> bool`, whether the current is better; default: smaller loss.
        assets_extra: files to add: name in the export to path.
        exports_to_keep: newest exports kept, which are the best; None keeps all.
        eval_name: the name of the evaluation whose record is read; default: that of the EvalSpec it is used in.
        format: name of an export format.

    Raises:
        ArgumentError, ArgumentTypeError: for arguments that cannot be used.

    Example:
        >>> BestExporter(serving_input_receiver_fn=lambda: None).name
        'best_exporter'

    Source: `tf.estimator.BestExporter`.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = None,
        compare_fn: Callable[..., bool] = loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        exports_to_keep: int | None = 5,
        *,
        eval_name: str | None = None,
        format: str = "stablehlo",
    ) -> None:
        if not callable(compare_fn):
            raise ArgumentTypeError(f"`compare_fn` must be a function, given: {compare_fn!r}.")
        names = set(inspect.signature(compare_fn).parameters)
        for argument in ("best_eval_result", "current_eval_result"):
            if argument not in names:
                raise ArgumentError(f"compare_fn ({getattr(compare_fn, '__qualname__', compare_fn)}) must include {argument} argument.")
        self._compare = compare_fn
        self._eval_name = eval_name
        self._writer = SavedModelWriter(name, serving_input_receiver_fn, assets_extra, exports_to_keep, format)

    @property
    def name(self) -> str:
        """Its directory below `<model_dir>/export`."""
        return self._writer.name

    def export(self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Mapping[str, Any], is_the_final_export: bool) -> str | None:
        """Exports if this result is the best."""
        best = self._best(estimator, export_path, eval_result)
        if best is not None and not self._compare(best_eval_result=best, current_eval_result=eval_result):
            return None
        written = self._writer.write(estimator, export_path, checkpoint_path)
        if written is not None:
            _remember(Path(export_path), eval_result)
        return written

    def _best(self, estimator: Any, export_path: str, current: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            return json.loads((Path(export_path) / _STATE).read_text())["eval_result"]
        except (OSError, ValueError, KeyError):
            pass
        best: dict[str, Any] | None = None
        for step, metrics in ec.read_eval_metrics(estimator.eval_dir(self._eval_name)).items():
            earlier = {**metrics, "global_step": step}
            if step != current.get("global_step") and (best is None or self._compare(best_eval_result=best, current_eval_result=earlier)):
                best = earlier
        return best


def _remember(directory: Path, eval_result: Mapping[str, Any]) -> None:
    values = {name: float(value) for name, value in eval_result.items() if getattr(value, "ndim", 0) == 0}
    temporary = directory / f".{_STATE}.{os.getpid()}"
    temporary.write_text(json.dumps({"eval_result": values}))
    temporary.replace(directory / _STATE)
