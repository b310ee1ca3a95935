"""An exporter that exports at chosen steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, is_integer
from estimator_core.export import exports_in
from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter
from estimator_exporters.exporters.records import read_record, step_of, write_record

_STATE = "steps.json"


class StepExporter(WritingExporter):
    """Exports at the first evaluation at or after each chosen step, once per chosen step, even after restarts.

    `<export_path>/steps.json` records the step of the newest export.

    Args:
        name: the name of its directory under `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        steps_to_keep: the global steps. Pass either these or every_n_steps.
        every_n_steps: the number of global steps between chosen steps. The multiples of it are chosen.
        assets_extra: the files to add, from the name in the export to the path.
        exports_to_keep: the number of newest exports to keep. None keeps all.
        format: the name of an export format.
        background: whether to write while training continues.

    Raises:
        ArgumentError, ArgumentTypeError: an argument is invalid.

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
        if not chosen or any(not is_integer(step) or step <= 0 for step in chosen):
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
        finished = self.wait()  # it records its step
        step = int(eval_result["global_step"])
        state = Path(export_path) / _STATE
        if self._reached(step) <= self._noted(state, step):
            return finished
        written = self._writer.write(
            estimator, export_path, checkpoint_path, done=lambda path: write_record(state, {"step": step})
        )
        return written or finished

    def _noted(self, state: Path, step: int) -> int:
        """Returns the step of the last export. A killed process may not have recorded it, so the newest one counts."""
        exported = (step_of(path) or 0 for path in exports_in(state.parent)[-1:])
        return max(int(read_record(state).get("step", 0)), *(one for one in exported if one < step), 0)

    def _reached(self, step: int) -> int:
        """Returns the last chosen step up to `step`, or 0 if there is none."""
        if self._every is not None:
            return step // self._every * self._every
        return max((chosen for chosen in self._steps or () if chosen <= step), default=0)
