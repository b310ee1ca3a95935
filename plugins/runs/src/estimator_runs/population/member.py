"""One run of a population: a training call starts it, and another one writes what was trained for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from estimator_core.checkpoint import checkpoint_step, read_checkpoint
from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_core.hooks import Hook
from estimator_core.inputs import Batch, BatchSource, InputPosition
from estimator_core.lowering import land
from estimator_core.train_eval import training_batches

#: The packages whose hooks show a run and do not change it.
_HARMLESS = ("estimator_hooks",)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A run that is trained together with others.

    Args:
        name: the name of the run in messages.
        estimator: the Estimator, with its own model_dir.
        input_fn: the training input.
        hooks: the hooks, which must be empty, because a hook sees the steps of one run.
    """

    name: str
    estimator: Estimator
    input_fn: Callable[..., Any]
    hooks: Sequence[Any] = ()


@dataclass(kw_only=True)
class Standing:
    """The progress of a member.

    Attributes:
        member: the member.
        step: the newest step.
        state: the state on the host.
        batches: the source of the next batches.
        position: the position of the input after that step; None: the beginning.
        losses: the losses by step, since the last save.
    """

    member: Member
    step: int
    state: Any
    batches: BatchSource
    position: InputPosition | None
    losses: dict[int, Mapping[str, float]] = field(default_factory=dict[int, Mapping[str, float]])

    def draw(self) -> Batch | None:
        """Returns the next batch, or None if the input has ended, perhaps before this process was started."""
        batch = next(self.batches, None)
        return None if self.batches.ended else batch


class _Look(Hook):
    """Copies the state that a run starts from, and ends the call before its first step."""

    place = "late"
    found: Any = None

    def __init__(self, name: str) -> None:
        self._name = name

    def begin(self, run: Any) -> None:
        """Refuses hooks of plugins that see the steps of a run."""
        for hook in run.estimator._plugins.run_hooks(run):  # noqa: SLF001
            if type(hook).__module__.partition(".")[0] not in _HARMLESS:
                raise ArgumentError(
                    f"{self._name} cannot be trained together with others: the hook {type(hook).__name__} of an "
                    f"installed plugin ({type(hook).__module__}) sees the steps of one run. Set default_hooks=False."
                )

    def after_create(self, run: Any) -> None:
        """Copies the state."""
        self.found = jax.tree.map(np.array, run.state)
        run.request_stop("its steps are made together with those of other runs")


class _Land(Hook):
    """Sets the state that was trained for the run, and writes the losses of its steps."""

    place = "early"

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def after_create(self, run: Any) -> None:
        """Sets the state."""
        standing = self._standing
        land(run, standing.state, standing.position)
        for step, values in standing.losses.items():
            for name, value in values.items():
                run.summaries.scalar(name, value, step)


def check_member(member: Member) -> None:
    """Refuses a run that cannot be trained together with others.

    Raises:
        ArgumentError: it cannot be. The message names the member and the reason.
    """
    config, why = member.estimator.config, None
    if member.hooks:
        why = f"the hook {type(member.hooks[0]).__name__} sees the steps of one run"
    elif not (config.save_checkpoints_steps or config.save_checkpoints_secs):
        why = "its RunConfig saves no checkpoints: set save_checkpoints_steps"
    elif config.mesh:
        why = f"its mesh {config.mesh} spreads it over devices"
    elif config.steps_per_dispatch == "auto":
        why = 'steps_per_dispatch="auto" measures one run: set a number'
    elif config.debug:
        why = "debug=True runs without compilation"
    elif config.components.get("nan_tensor", "nan_tensor") != "nan_tensor":
        why = 'a run stops here when its loss is not finite: leave components["nan_tensor"] as it is'
    if why is not None:
        raise ArgumentError(f"{member.name} cannot be trained together with others: {why}.")


def start(member: Member) -> Standing:
    """Starts or resumes a run by a training call that ends before its first step.

    Raises:
        ArgumentError: the input has no batch, or a plugin adds a hook to the run.
    """
    look = _Look(member.name)
    member.estimator.train(member.input_fn, hooks=[look])
    path = member.estimator.latest_checkpoint()
    if look.found is None or path is None:
        raise ArgumentError(f"{member.name} cannot be trained: its input has no batch.")
    said = read_checkpoint(path, items=("input",)).input
    position = None if said is None else InputPosition.from_json(said)
    batches = training_batches(member.estimator, member.input_fn, position)
    return Standing(member=member, step=checkpoint_step(path), state=look.found, batches=batches, position=position)


def save(standing: Standing) -> None:
    """Writes the progress of a run to its model_dir, with a checkpoint, by a separate training call."""
    standing.member.estimator.train(standing.member.input_fn, hooks=[_Land(standing)], max_steps=standing.step)
    standing.losses.clear()
