"""An exporter that exports when an evaluation is better than all before it."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import exports_in, remove_export
from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter
from estimator_exporters.exporters.records import plain, read_record, step_of, write_record

_log = logging.getLogger("estimator_exporters")
_STATE = "best.json"


def loss_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    """Returns whether the current loss is smaller. Any number is smaller than NaN.

    Raises:
        ArgumentError: there is no loss.

    Example:
        >>> loss_smaller({"loss": 1.0}, {"loss": 0.5})
        True
    """
    for name, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or "loss" not in result:
            raise ArgumentError(f"{name} cannot be empty or no loss is found in it.")
    best, current = float(best_eval_result["loss"]), float(current_eval_result["loss"])
    return best > current or (math.isnan(best) and not math.isnan(current))


class BestExporter(WritingExporter):
    """Exports the model when an evaluation is better than all previous ones, including those of earlier processes.

    `<export_path>/best.json` lists the exports. Recorded evaluations are compared as well, so that a resumed run does
    not start with a worse model. A better evaluation between checkpoints is logged as a warning.

    Args:
        name: the name of its directory under `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        event_file_pattern: not used. The results are read from the record of the evaluation.
        compare_fn: `(best_eval_result, current_eval_result) -> bool`, whether the current result is better. Default: a
            smaller loss. A process calls it once per pair of results, and compares each new result with the best so
            far. The first result is compared with itself, to check that it can be compared. Metrics that are arrays are
            arrays in results of earlier processes, too.
        assets_extra: the files to add, from the name in the export to the path.
        exports_to_keep: the number of exports to keep. None keeps all.
        keep: "newest" exports each new best and keeps the newest exports. "best" also exports an evaluation that is
            among the best `exports_to_keep`, and deletes the worst.
        eval_name: the name of the evaluation whose record is read. Default: the name of the EvalSpec that uses the
            exporter.
        format: the name of an export format.
        background: whether to write while training continues.

    Raises:
        ArgumentError, ArgumentTypeError: an argument is invalid.

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
        keep: str = "newest",
        eval_name: str | None = None,
        format: str = "stablehlo",
        background: bool = False,
    ) -> None:
        _check_compare_fn(compare_fn)
        if keep not in ("newest", "best"):
            raise ArgumentError(f"Exporter {name!r}: keep must be 'newest' or 'best', given: {keep!r}.")
        super().__init__(
            SavedModelWriter(
                name,
                serving_input_receiver_fn,
                assets_extra,
                exports_to_keep if keep == "newest" else None,
                format,
                background,
            )
        )
        if keep == "best" and exports_to_keep is not None:
            SavedModelWriter(name, serving_input_receiver_fn, exports_to_keep=exports_to_keep)  # the same checks
        self._compare = compare_fn
        #: The answers of compare_fn, by the contents of the two results.
        self._answers: dict[tuple[str, str], bool] = {}
        #: The contents of the compared results and of their best, by whether only results with a checkpoint were
        #: compared.
        self._compared: dict[bool, tuple[frozenset[str], str]] = {}
        self._eval_name = eval_name
        self._used_in: str | None = None
        self._best_to_keep = exports_to_keep if keep == "best" else None

    def used_in(self, eval_name: str | None) -> None:
        """Notes the name of the evaluation that uses this exporter now."""
        self._used_in = eval_name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> str | None:
        """Exports if this result is the best, or is among the best that are kept."""
        finished = self.wait()
        eval_result = eval_result or {}  # the exporters of tf.estimator may receive None
        earlier = self._recorded(estimator, eval_result, with_checkpoint=True)
        kept = self._completed(Path(export_path), earlier)
        exported = [entry["eval_result"] for entry in kept]
        best = self._best((*exported, *earlier), with_checkpoint=True)
        better = self._compared_with(eval_result if best is None else best, eval_result)
        if best is not None and not better and not self._belongs(kept, eval_result):
            _log.info(
                "Exporter %s: the evaluation at step %s is not the best.", self.name, eval_result.get("global_step")
            )
            return finished
        self._tell_of_better(estimator, eval_result, earlier)

        def remember(path: str) -> None:
            entry = {"path": Path(path).name, "eval_result": plain(eval_result)}
            self._record(Path(export_path), self._ranked(kept, entry))

        return self._writer.write(estimator, export_path, checkpoint_path, done=remember) or finished

    def _completed(self, folder: Path, recorded: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Returns the entries, after completing the work of a killed process: its deletions, and the entries of its
        exports.
        """
        entries = kept = _kept(folder / _STATE)
        named = {entry["path"] for entry in kept}
        for name in _doomed(folder / _STATE, named):
            remove_export(folder / name)
        if self._best_to_keep is None:  # exports without entries are deleted like the others
            return kept
        steps = {entry["eval_result"].get("global_step") for entry in kept}  # other exports of such a step are older
        results = {step: plain(result) for result in recorded if (step := result["global_step"]) not in steps}
        for path in exports_in(folder):
            result = None if path.name in named else results.get(step_of(path))
            if result is not None:
                kept = self._ranked(kept, {"path": path.name, "eval_result": result})
        return kept if kept is entries else self._record(folder, kept)

    def _record(self, folder: Path, ranked: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Records the best entries and deletes the exports of the others. Returns the entries that are kept."""
        many = self._best_to_keep or 1
        doomed = [one["path"] for one in ranked[many:]]
        # A process may be killed at any of these lines. The deletions are recorded first, and are completed next time.
        write_record(folder / _STATE, {"exports": ranked[:many], "deleted": doomed})
        for name in doomed:
            remove_export(folder / name)
            _log.info("Exporter %s deleted %s: %d are better.", self.name, name, many)
        return ranked[:many]

    def _better(self, best: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
        pair = _content(best), _content(current)
        if pair not in self._answers:
            self._answers[pair] = bool(
                self._compare(best_eval_result=_arrays(best), current_eval_result=_arrays(current))
            )
            if self._answers[pair]:  # the other result is not better then
                self._answers.setdefault((pair[1], pair[0]), False)
        return self._answers[pair]

    def _gives_way(self, kept: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Returns whether a result ranks above a kept one. A result that cannot be compared ranks below the others."""
        try:
            return self._better(kept, result)
        except (KeyError, ArgumentError):
            return self._is_comparable(result)

    def _is_comparable(self, result: Mapping[str, Any]) -> bool:
        try:
            self._better(result, result)
        except (KeyError, ArgumentError):
            return False
        return True

    def _compared_with(self, best: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        try:
            return self._better(best, result)
        except KeyError as error:
            raise ArgumentError(
                f"Exporter {self.name!r}: compare_fn looks at the metric {error}, which the evaluation does not "
                f"return. It returns {sorted(result)}."
            ) from error

    def _tell_of_better(
        self, estimator: Any, current: Mapping[str, Any], with_checkpoint: Iterable[Mapping[str, Any]]
    ) -> None:
        """Warns of a better evaluation between checkpoints. It cannot be exported, but users of the best model need to
        know.
        """
        steps = {one["global_step"] for one in with_checkpoint}
        everything = self._recorded(estimator, current, with_checkpoint=False)
        lost = self._best((one for one in everything if one["global_step"] not in steps), with_checkpoint=False)
        if lost is not None and self._better(current, lost):
            _log.warning(
                "Exporter %s exports step %s. The evaluation at step %s was better, but no checkpoint holds it. "
                "RunConfig(save_checkpoints_steps=N), where N is the steps between evaluations, saves one for each.",
                self.name,
                current.get("global_step"),
                lost["global_step"],
            )

    def _recorded(
        self, estimator: Any, current: Mapping[str, Any], *, with_checkpoint: bool
    ) -> list[Mapping[str, Any]]:
        """Returns the recorded results except the current one."""
        name = self._used_in if self._eval_name is None else self._eval_name
        recorded = ec.read_eval_metrics(estimator.eval_dir(name), with_checkpoint=with_checkpoint)
        step = current.get("global_step")
        return [{**metrics, "global_step": number} for number, metrics in recorded.items() if number != step]

    def _best(self, results: Iterable[Mapping[str, Any]], *, with_checkpoint: bool) -> Mapping[str, Any] | None:
        """Returns the best comparable result, and the first among equals. Compares only results that are new."""
        named: dict[str, Mapping[str, Any]] = {}
        for result in results:
            named.setdefault(_content(result), result)
        before, of_them = self._compared.get(with_checkpoint, (frozenset[str](), ""))
        known = of_them in named and before <= named.keys()
        best = named[of_them] if known else None
        for content, result in named.items():
            if known and content in before:
                continue
            try:
                if best is None:
                    self._better(result, result)  # whether it has the metrics that compare_fn reads
                    best = result
                elif self._better(best, result):
                    best = result
            except (KeyError, ArgumentError) as error:
                _log.info(
                    "Exporter %s cannot compare the evaluation at step %s: %r",
                    self.name,
                    result.get("global_step"),
                    error,
                )
        if best is not None:
            self._compared[with_checkpoint] = frozenset(named), _content(best)
        return best

    def _belongs(self, kept: list[dict[str, Any]], current: Mapping[str, Any]) -> bool:
        if self._best_to_keep is None or any(
            entry["eval_result"].get("global_step") == current.get("global_step") for entry in kept
        ):
            return False
        return len(kept) < self._best_to_keep or any(self._gives_way(entry["eval_result"], current) for entry in kept)

    def _ranked(self, kept: list[dict[str, Any]], entry: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns all entries, best first. If the newest exports are kept, returns only the new entry."""
        if self._best_to_keep is None:
            return [entry]
        ranked: list[dict[str, Any]] = []
        for one in (*(one for one in kept if one["path"] != entry["path"]), entry):  # a state may be evaluated again
            place = len(ranked)  # kept entries are in order, unless another compare_fn ranked them
            while place and self._gives_way(ranked[place - 1]["eval_result"], one["eval_result"]):
                place -= 1
            ranked.insert(place, one)
        return ranked


def _kept(state: Path) -> list[dict[str, Any]]:
    entries = read_record(state).get("exports", [])
    sound = isinstance(entries, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("eval_result"), dict) and isinstance(entry.get("path"), str)
        for entry in entries
    )
    return [entry for entry in entries if entry["path"].isdigit()] if sound else []


def _doomed(state: Path, ranked: set[str]) -> list[str]:
    """Returns the exports that an earlier process meant to delete and may not have deleted."""
    names = read_record(state).get("deleted", [])
    names = names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str) and name.isdigit() and name not in ranked]


def _content(result: Mapping[str, Any]) -> str:
    """Returns a digest that identifies a result, whether it was recorded or has just been computed."""
    return hashlib.sha256(json.dumps(plain(result), sort_keys=True).encode()).hexdigest()


def _arrays(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a result in the form of an evaluation: a recorded list becomes an array."""
    return {name: np.asarray(value) if isinstance(value, list) else value for name, value in result.items()}


def _check_compare_fn(compare_fn: Any) -> None:
    if not callable(compare_fn):
        raise ArgumentTypeError(f"`compare_fn` must be a function, given: {compare_fn!r}.")
    names = set(inspect.signature(compare_fn).parameters)
    for argument in ("best_eval_result", "current_eval_result"):
        if argument not in names:
            raise ArgumentError(
                f"compare_fn ({getattr(compare_fn, '__qualname__', compare_fn)}) must include {argument} argument."
            )
