"""Exports at chosen steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.export import exports_in
from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter
from estimator_exporters.exporters.records import read_record, step_of, write_record

_STATE = "steps.json"


class StepExporter(WritingExporter):
    """Exports at the first evaluation at or after each chosen step, once for each, restarts included.

    The step of the newest export is kept in `<export_path>/steps.json`.

    Args:
        name: its directory below `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        steps_to_keep: global steps. Give these or every_n_steps.
        every_n_steps: every multiple of this many global steps.
        assets_extra: files to add: name in the export to path.
        exports_to_keep: newest exports kept; None keeps all.
        format: name of an export format.
        background: write while training continues.

    Raises:
        ArgumentError, ArgumentTypeError: for arguments that cannot be used.

    Example:
        >>> StepExporter("milestones", lambda: None, steps_to_keep=[100, 1000]).name
        'milestones'
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        steps_to_keep: Sequence[int] | None = None,
        every_n_steps: int | None = None,
        assets_extra: Mapping[str, str] | None = None,
        exports_to_keep: int | None = None,
        *,
        format: str = "stablehlo",
        background: bool = False,
    ) -> None:
        if (steps_to_keep is None) == (every_n_steps is None):
            raise ArgumentError(f"Exporter {name!r}: give exactly one of steps_to_keep and every_n_steps.")
        chosen: list[Any] = [every_n_steps] if steps_to_keep is None else list(steps_to_keep)
        if not chosen or any(isinstance(step, bool) or not isinstance(step, int) or step <= 0 for step in chosen):
            raise ArgumentError(f"Exporter {name!r}: steps must be positive integers, given: {chosen}.")
        self._steps = None if steps_to_keep is None else sorted(chosen)
        self._every = every_n_steps
        super().__init__(
            SavedModelWriter(name, serving_input_receiver_fn, assets_extra, exports_to_keep, format, background)
        )

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Exports if a chosen step has been reached since the last export."""
        finished = self.wait()  # it notes its step
        step = int(eval_result["global_step"])
        state = Path(export_path) / _STATE
        if self._reached(step) <= self._noted(state, step):
            return finished
        written = self._writer.write(
            estimator, export_path, checkpoint_path, done=lambda path: write_record(state, {"step": step})
        )
        return written or finished

    def _noted(self, state: Path, step: int) -> int:
        """The step of the last export. A process may have been killed before it noted it, and begin at a later one."""
        exported = (step_of(path) or 0 for path in exports_in(state.parent)[-1:])
        return max(int(read_record(state).get("step", 0)), *(one for one in exported if one < step), 0)

    def _reached(self, step: int) -> int:
        """The last chosen step up to `step`, 0 if none."""
        if self._every is not None:
            return step // self._every * self._every
        return max((chosen for chosen in self._steps or () if chosen <= step), default=0)
