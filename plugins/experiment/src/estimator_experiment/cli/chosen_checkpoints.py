"""The checkpoints of a model_dir that the command line selects."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.errors import ArgumentError


def chosen_checkpoints(model_dir: str, wanted: Sequence[str]) -> list[str]:
    """Returns the paths of checkpoints. For a URL, these are URLs, which `checkpoint_path=` accepts.

    Args:
        model_dir: the directory of the run, or its URL.
        wanted: steps, "newest", or only "all".

    Raises:
        ArgumentError: a checkpoint does not exist.
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
    """Returns the checkpoints of a run by step, in ascending order."""
    from estimator_core.checkpoint import all_checkpoints, checkpoint_step

    return {checkpoint_step(path): path for path in all_checkpoints(model_dir)}
