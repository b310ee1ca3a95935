"""The contracts of hooks and checkpoint listeners: what happens around a step.

A hook says when it next wants control. Between those steps it costs nothing, and the loop may dispatch several steps at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from estimator_core._members import check_members

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from estimator_core._metrics.base import Metric
    from estimator_core.config import RunConfig

__all__ = [
    "CheckpointListener",
    "CheckpointPolicy",
    "Hook",
    "Run",
    "RunState",
    "SavedCheckpoint",
    "SeesBatches",
    "StepOutputs",
    "SummaryWriter",
    "Wake",
]


class StepOutputs(Protocol):
    """What one dispatch computed, read lazily: nothing is copied from the device before it is requested.

    `out["loss"]` is the value of the last step of the dispatch, with the shape it has in a single step;
    iterating yields the names.
    """

    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

    def all(self, name: str) -> np.ndarray:
        """The values of every step of the dispatch, with a leading axis of steps."""
        ...

    @property
    def steps(self) -> range:
        """The global steps this dispatch completed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """When a hook wants control, and how.

    Attributes:
        step: after this global step; None: no step.
        time: or at this `time.monotonic()`, if that comes first. It is looked at once per dispatch.
        within: `after_step` may be called up to this many steps late. Meanwhile the loop sends more steps to the
            device, so that it is busy while the hook reads values. `after_step` gets the outputs and the number of its
            own step; what `run` shows (step, batch, batch_size, variables) may be ahead of it. A hook must not be due
            again within these steps, nor request a stop at an exact step.
        joins: also whenever another hook has control.

    Example:
        >>> Wake(step=100, within=99)
        Wake(step=100, time=None, within=99, joins=False)
    """

    step: int | None = None
    time: float | None = None
    within: int = 0
    joins: bool = False


class RunState(Protocol):
    """The state of a run on its devices. The next training step donates it, so keep no part of it."""

    @property
    def clock(self) -> Any:
        """uint32[4]. The first number is the global step of the variables, also in evaluations and predictions."""
        ...

    @property
    def variables(self) -> Mapping[str, Any]:
        """Trainable variables by path."""
        ...

    @property
    def model_state(self) -> Mapping[str, Any]:
        """Variables that are not trained, by path."""
        ...

    @property
    def opt_state(self) -> Any:
        """The state of the optimizer."""
        ...


class Run(Protocol):
    """What a hook sees of the train, evaluate or predict call that it runs in."""

    @property
    def mode(self) -> str:
        """One of `ModeKeys`."""
        ...

    @property
    def name(self) -> str | None:
        """The name of the evaluation, None in training."""
        ...

    @property
    def step(self) -> int:
        """The global step: the number of completed training steps."""
        ...

    @property
    def first_step(self) -> int:
        """The global step at which this call started."""
        ...

    @property
    def last_step(self) -> int | None:
        """The global step at which this call stops by itself, if known."""
        ...

    @property
    def batch_size(self) -> int:
        """Examples in the newest batch (all processes together)."""
        ...

    @property
    def estimator(self) -> Any:
        """The Estimator."""
        ...

    @property
    def config(self) -> RunConfig:
        """The RunConfig of the estimator."""
        ...

    @property
    def params(self) -> Any:
        """The params or HParams that model_fn gets."""
        ...

    @property
    def model_dir(self) -> Path:
        """Where the run writes."""
        ...

    @property
    def summaries(self) -> SummaryWriter:
        """The event file of this run; a no-op object if summaries are off or this process does not write."""
        ...

    @property
    def output_names(self) -> frozenset[str]:
        """The names in `out[...]`: "loss", summaries, named tensors, hyperparameters, predictions. Known from
        `after_create` on.
        """
        ...

    @property
    def output_kinds(self) -> Mapping[str, str]:
        """What each output is: "scalar", "histogram", "image", "text", "tensor", "metric", or "constant" (a
        hyperparameter of the optimizer that no schedule changes).
        """
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """Text summaries by name."""
        ...

    @property
    def batch(self) -> Any:
        """The newest batch on the host, when a hook is due: features, labels, host-only features, size."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """Why the run stops, once a stop is requested."""
        ...

    @property
    def resumed(self) -> bool:
        """Whether this call resumes an interrupted one. A call that follows a completed one starts its cadences
        again.
        """
        ...

    @property
    def failed(self) -> bool:
        """In `end`: whether an error ended the run."""
        ...

    @property
    def interrupted(self) -> bool:
        """In `end`: whether the platform (SIGTERM, a preemption notice) ended the run."""
        ...

    def request_stop(self, reason: str) -> None:
        """Ends the loop after the dispatch under way. `reason` says why. The remaining hooks still see its step."""
        ...

    def fetch(self, name: str) -> None:
        """Declares, in `begin`, that `out[name]` of a non-scalar output (a prediction, a named tensor) will be read."""
        ...

    def follow(self, name: str) -> None:
        """Declares, in `begin`, that the hook wants the output `name` of every step. Its values are delivered to
        `on_values`, stacked, and do not interrupt a dispatch. In `after_create` it may name what every step returns
        anyway: in an evaluation, the loss alone.
        """
        ...

    def transform_batches(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        """Declares, in `begin`, that every batch goes through `function(features, labels) -> (features, labels)`.

        It is called when the input is drawn, on numpy arrays, including strings.
        """
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of a training call so far: "step", "input", "compile", "hooks", "evaluation" and "checkpoint"."""
        ...

    @property
    def hook_seconds(self) -> Mapping[str, float]:
        """Seconds of this call so far in each hook, by its class."""
        ...

    @property
    def activity(self) -> str:
        """What the call spends its time on at the moment: a name in `seconds`. Any thread may read it."""
        ...

    @property
    def input_part(self) -> tuple[int, int]:
        """Which part of the input this process draws, and how many parts there are."""
        ...

    @property
    def input_rows(self) -> Callable[[int], np.ndarray]:
        """From the number of rows of a global batch (`run.batch.total`) to the rows of this process, ascending."""
        ...

    @property
    def batch_metrics(self) -> Callable[[Any, Any, Any, Any], dict[str, Metric]]:
        """`(state, features, labels, weights)` to the metrics of one batch of an evaluation, from `after_create` on.

        It is pure, for use in a trace, and the same object in all evaluations of one model and batch form. `state` is
        `run.state`. Features and labels are as in `run.batch`. `weights` is float32 [rows], 1 for an example that
        counts and 0 for one that does not.
        """
        ...

    def add_result(self, name: str, value: Any) -> None:
        """Adds a `value` under a `name` to the results of an evaluation, in `end` at the latest. It is a number, an
        array, or a list of JSON values. Only `metrics.jsonl` keeps such a list.

        Raises:
            HookError: at the end of the evaluation, if the name is that of a metric.
        """
        ...

    def step_flops(self) -> float | None:
        """Floating point operations of a training step, as XLA counts them before optimisation.

        None before the first step, in evaluation and prediction, and if XLA does not report it.
        """
        ...

    def variables(self) -> dict[str, np.ndarray]:
        """A host copy of the trainable variables, by path."""
        ...

    @property
    def state(self) -> RunState:
        """The state on the devices, from `after_create` on."""
        ...

    def assign(self, values: Mapping[str, Any]) -> None:
        """Replaces variables and model state by path in a training run. The next step starts from the new values, host
        or device arrays of the same shapes.

        Raises:
            HookError: a path does not exist, or a shape differs.
        """
        ...

    def swapped(self, values: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Within, evaluations see other values of some trainable variables, device arrays by path, without a copy."""
        ...


class SummaryWriter(Protocol):
    """A TensorBoard event file."""

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Writes one number."""
        ...

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Writes the distribution of an array."""
        ...

    def image(self, tag: str, image: Any, step: int) -> None:
        """Height x width x channels, uint8 or float in [0, 1]."""
        ...

    def text(self, tag: str, text: str, step: int) -> None:
        """Writes a text."""
        ...

    def event(self, event: Any, step: int) -> None:
        """Writes a `tensorboardX.proto.event_pb2.Event`, whose step and wall time are set here: data of TensorBoard's
        plugins, such as a graph or hyperparameters.
        """
        ...

    def flush(self) -> None:
        """Passes everything written to the operating system."""
        ...


class Hook:
    """Base of all hooks. Every method does nothing. Override those you need.

    The calls in training, in order:

    - `begin`: the devices are ready and input_fn has been called, but no batch has been drawn. For hooks of the
      EstimatorSpec, it follows discovery.
    - `after_create`: the first batch has been seen, the state is initialised or restored, and output names are known.
    - `before_step`: before the step whose completion this hook waits for.
    - `after_step`: after that step.
    - `end`: always, even if another hook raised an error.

    Methods are called in the order of the hooks, including `end`. An exception names the hook, its package and the
    step.

    Example:
        >>> class Every(Hook):
        ...     def next_step(self, step):
        ...         return step + 10
        ...
        ...     def after_step(self, run, step, out):
        ...         print(step, float(out["loss"]))
        >>> Every().next_step(20)
        30
        >>> Hook().next_step(0) is None
        True
    """

    #: Stable key of this hook's state in checkpoints; the class name unless set. Two hooks of one name are
    #: numbered in list order.
    name: ClassVar[str | None] = None
    #: The place of the hook among those of plugins and of the call. Hooks of one place keep their order.
    place: ClassVar[Literal["early", "normal", "late"]] = "normal"

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuses reserved names that are not members: `before_*`, `after_*`, `on_*`, and members of earlier versions.

        Raises:
            HookError: there is such a name. The message names the class, the name and the remedy.
        """
        super().__init_subclass__(**arguments)
        check_members(cls)

    def begin(self, run: Run) -> None:
        """Called once before the first batch is drawn. `run` says what call it is."""

    def after_create(self, run: Run) -> None:
        """Called once when the state of `run` is ready and the first batch has been seen."""

    def before_step(self, run: Run, step: int) -> None:
        """Called before a dispatch that completes a requested step.

        Args:
            run: the call.
            step: the global step before the dispatch.
        """

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Called after a dispatch that completed a requested step.

        Args:
            run: the call.
            step: the global step after the dispatch.
            out: outputs of the step by name, such as "loss", float32 []. Reading one waits for the device.
        """

    def before_last_save(self, run: Run) -> None:
        """Called when training has ended without an error or an interruption, after the last evaluation and before the
        last save. The run ends with the variables that are replaced here.
        """

    def end(self, run: Run) -> None:
        """Called once at the end of `run`, whatever happened."""

    def next_step(self, step: int) -> int | Wake | None:
        """When this hook wants control next: after a global step (> `step`), as a `Wake` says, or never (None).

        It is called after `after_create` and after each `after_step`. `Wake.within` counts only if the class that
        defines `after_step`, or a subclass, also defines `next_step`. Default: every step for hooks that override
        `before_step` or `after_step`, never for the others.
        """
        per_step = type(self).after_step is not Hook.after_step or type(self).before_step is not Hook.before_step
        return step + 1 if per_step else None

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Gets the outputs that `run.follow` named, some time after the steps ran (values[name].shape ==
        (len(steps), *shape)), in order, with none missing at `end`. Steps whose outputs differ in shape come in calls
        of their own. A name that these steps do not produce, because of the shape of their batches, is not in `values`.
        """

    def state(self) -> Mapping[str, Any]:
        """What must survive a resume: JSON values or numpy arrays."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned. Called before `after_create` if and only if `run.resumed`."""


@runtime_checkable
class SeesBatches(Protocol):
    """An optional contract of evaluation hooks that see every batch of the input before host transforms."""

    def see(self, features: Any, labels: Any) -> None:
        """Called when a batch is drawn, in the order of the batches, perhaps ahead of their steps and in a thread."""
        ...


class CheckpointPolicy:
    """Decides when checkpoints are saved, and nothing else: the training call evaluates, saves and tells listeners.

    A save on interruption, or before the error of an evaluation is raised, ignores the policy and does not shift its
    cadence. With several processes, each has its own policy, so all must decide alike.

    Example:
        >>> class PowersOfTwo(CheckpointPolicy):
        ...     def next_step(self, step):
        ...         return 2 ** step.bit_length()
        >>> [PowersOfTwo().next_step(step) for step in (0, 1, 2, 3, 4)]
        [1, 2, 4, 4, 8]
    """

    #: The name under which a checkpoint holds the policy's state; the class name unless set.
    name: ClassVar[str | None] = None

    def at_start(self, run: Run) -> bool:
        """Whether to save the state that the run starts from, if no checkpoint has it. Called once, after `restore`."""
        return True

    def next_step(self, step: int) -> int | Wake | None:
        """When to save next: after a global step (> `step`), as a `Wake` says (`within` does not count), or never
        (None). It is called once after `at_start` and once after each of these saves.
        """
        return None

    def saved(self, run: Run, step: int) -> None:
        """Called when a save of `run` that `next_step` requested begins, before its evaluations. `step` is its global
        step. The checkpoint holds the state of the policy after this call.
        """

    def at_end(self, run: Run) -> bool:
        """Whether to save the last step after `run` ended by itself. `train_and_evaluate` saves it anyway."""
        return True

    def state(self) -> Mapping[str, Any]:
        """What must survive a resume: JSON values or numpy arrays."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned. Called before `at_start` if `run.resumed` and the state has this name."""


@runtime_checkable
class SavedCheckpoint(Protocol):
    """A checkpoint that is being written."""

    @property
    def step(self) -> int:
        """The global step that is saved."""
        ...

    @property
    def path(self) -> str:
        """The committed directory. Waits for the commit."""
        ...


class CheckpointListener:
    """Called around each checkpoint, in list order.

    Example:
        >>> class Announce(CheckpointListener):
        ...     def after_save(self, run, step, checkpoint):
        ...         print("saved", step, checkpoint.path)
    """

    def begin(self, run: Run) -> None:
        """Called when training begins."""

    def before_save(self, run: Run, step: int) -> None:
        """Called just before the state is copied."""

    def after_save(self, run: Run, step: int, checkpoint: SavedCheckpoint) -> bool | None:
        """Called after the save was started. Reading `checkpoint.path` waits for its commit. True requests that
        training stops.
        """
        return None

    def end(self, run: Run, step: int) -> None:
        """Called when training ends."""
