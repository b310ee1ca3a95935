"""Checkpoints of a model_dir, as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.errors import ArgumentError


def chosen_checkpoints(model_dir: str, wanted: Sequence[str]) -> list[str]:
    """Paths of checkpoints; at a URL their URLs, which `checkpoint_path=` takes.

    Args:
        model_dir: of the run, or its URL.
        wanted: steps, "newest", or "all" alone.

    Raises:
        ArgumentError: there is no such checkpoint.
    """
    by_step = _by_step(model_dir)
    if not by_step:
        raise ArgumentError(f"There is no checkpoint in {model_dir}. Train first, or give another --model-dir.")
    if list(wanted) == ["all"]:
        return list(by_step.values())
    found: list[str] = []
    for step in wanted:
        number = max(by_step) if step == "newest" else int(step) if step.isdecimal() else -1
        if number not in by_step:
            raise ArgumentError(
                f"--checkpoint {step}: {model_dir} has no checkpoint of this step. Steps: {sorted(by_step)}."
            )
        found.append(by_step[number])
    return found


def _by_step(model_dir: str) -> dict[int, str]:
    """The checkpoints of a run, oldest step first."""
    from estimator_core.checkpoint import all_checkpoints, checkpoint_step

    return {checkpoint_step(path): path for path in all_checkpoints(model_dir)}
