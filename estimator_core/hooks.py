"""The contracts of hooks, checkpoint policies and checkpoint listeners, which run around the steps of a call.

A hook requests the step at which it next needs control. Between these steps it costs nothing, and the loop may dispatch
several steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from estimator_core._hook_members import check_members

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
    """The outputs of one dispatch. An output is copied from the device only when it is read.

    `out["loss"]` is the value of the last step of the dispatch, with the shape of a single step. Iterating yields the
    names.
    """

    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

    def all(self, name: str) -> np.ndarray:
        """Returns the values of every step of the dispatch, with a leading axis of steps."""
        ...

    @property
    def steps(self) -> range:
        """The global steps that this dispatch completed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Defines when a hook needs control, and how.

    Attributes:
        step: after this global step; None: no step.
        time: or at this `time.monotonic()`, if that comes first. The loop checks it once per dispatch.
        within: `after_step` may be called up to this many steps late. Meanwhile the loop sends more steps to the
            device, to keep it busy while the hook reads values. `after_step` receives the number and the outputs of its
            own step, but `run` (step, batch, batch_size, variables) may be ahead of that step. A hook must not be due
            again within these steps, nor request a stop at an exact step.
        joins: whether this hook also gets control whenever another hook has control.

    Example:
        >>> Wake(step=100, within=99)
        Wake(step=100, time=None, within=99, joins=False)
    """

    step: int | None = None
    time: float | None = None
    within: int = 0
    joins: bool = False


class RunState(Protocol):
    """The state of a run on its devices. The next training step donates it, so do not keep any part of it."""

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
    """The train, evaluate or predict call that a hook runs in."""

    @property
    def mode(self) -> str:
        """One of `ModeKeys`."""
        ...

    @property
    def name(self) -> str | None:
        """The name of the evaluation; None in training."""
        ...

    @property
    def step(self) -> int:
        """The global step: the number of completed training steps.

        An evaluation or prediction counts its batches from 0 instead; the global step of its weights is
        `state.clock[0]`.
        """
        ...

    @property
    def first_step(self) -> int:
        """The value of `step` at which this call started."""
        ...

    @property
    def last_step(self) -> int | None:
        """The value of `step` at which this call ends without a stop request; None if unknown."""
        ...

    @property
    def batch_size(self) -> int:
        """Number of examples in the newest batch, over all processes."""
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
        """The params or HParams that model_fn receives."""
        ...

    @property
    def model_dir(self) -> Path:
        """The directory that the run writes to."""
        ...

    @property
    def summaries(self) -> SummaryWriter:
        """The event file of this run. It does nothing if summaries are off or if this process does not write."""
        ...

    @property
    def output_names(self) -> frozenset[str]:
        """The names in `out[...]`: "loss", summaries, named tensors, hyperparameters, predictions.

        Known from `after_create` on.
        """
        ...

    @property
    def output_kinds(self) -> Mapping[str, str]:
        """The kind of each output: "scalar", "histogram", "image", "text", "tensor", "metric", or "constant" (a
        hyperparameter of the optimizer that no schedule changes).
        """
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """Text summaries by name."""
        ...

    @property
    def batch(self) -> Any:
        """The newest batch on the host when a hook is due: features, labels, host features and size."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """The reason of the requested stop; None before a request."""
        ...

    @property
    def resumed(self) -> bool:
        """Whether this call resumes an interrupted one.

        A call that follows a completed one starts its cadences again.
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
        """Ends the loop after the current dispatch, for a `reason` in words.

        The remaining hooks still see the step of this dispatch.
        """
        ...

    def fetch(self, name: str) -> None:
        """Declares that `out[name]` of a non-scalar output (a prediction, a named tensor) will be read.

        Call it in `begin`, or in `after_create`, where the names are known. In an evaluation, summaries must be
        declared too.
        """
        ...

    def follow(self, name: str) -> None:
        """Declares, in `begin`, that the hook wants the output `name` of every step.

        Its values are delivered to `on_values`, stacked, and do not interrupt a dispatch. In `after_create` of a
        training, only outputs that every step returns anyway may be named.
        """
        ...

    def transform_batches(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        """Declares, in `begin`, that `function(features, labels) -> (features, labels)` transforms every batch.

        The function is called with numpy arrays, including arrays of strings, when a batch is drawn.
        """
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds that a training call has spent so far in "step", "input", "compile", "hooks", "evaluation" and
        "checkpoint".
        """
        ...

    @property
    def hook_seconds(self) -> Mapping[str, float]:
        """Seconds that this call has spent so far in each hook, by class name."""
        ...

    @property
    def activity(self) -> str:
        """The current activity of the call: a name in `seconds`. Any thread may read it."""
        ...

    @property
    def input_part(self) -> tuple[int, int]:
        """The index of the part of the input that this process draws, and the number of parts."""
        ...

    @property
    def input_rows(self) -> Callable[[int], np.ndarray]:
        """A function from the number of rows of a global batch (`run.batch.total`) to the rows of this process,
        ascending.
        """
        ...

    @property
    def batch_metrics(self) -> Callable[[Any, Any, Any, Any], dict[str, Metric]]:
        """A function of `(state, features, labels, weights)` that returns the metrics of one evaluation batch.

        Available from `after_create` on.

        It is pure and may be traced. It is the same object in all evaluations with the same model and batch structure.
        `state` is `run.state`. Features and labels have the form of `run.batch`. `weights` is float32 [rows]: 1 for an
        example that counts, 0 for one that does not.
        """
        ...

    def add_result(self, name: str, value: Any) -> None:
        """Adds a `value` under a `name` to the results of an evaluation, in `end` at the latest.

        The value is a number, an array, or a list of JSON values. Lists are written only to `metrics.jsonl`.

        Raises:
            HookError: the value is of another kind. Or a metric has the same name; raised at the end of the evaluation.
        """
        ...

    def step_flops(self) -> float | None:
        """Floating point operations of a training step, as XLA counts them before optimisation.

        It is None before the first step, in evaluation and prediction, and if XLA does not report it.
        """
        ...

    def variables(self) -> dict[str, np.ndarray]:
        """Returns a host copy of the trainable variables, by path."""
        ...

    @property
    def state(self) -> RunState:
        """The state on the devices, from `after_create` on."""
        ...

    def assign(self, values: Mapping[str, Any]) -> None:
        """Replaces variables and model state of a training run, by path.

        The values are host or device arrays of the same shapes. The next step starts from them.

        Raises:
            HookError: a path does not exist, or a shape differs.
        """
        ...

    def swapped(self, values: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Inside the block, evaluations use other values of some trainable variables: device arrays by path.

        Nothing is copied.
        """
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
        """Writes an image: height x width x channels, uint8 or float in [0, 1]."""
        ...

    def text(self, tag: str, text: str, step: int) -> None:
        """Writes a text."""
        ...

    def event(self, event: Any, step: int) -> None:
        """Writes a `tensorboardX.proto.event_pb2.Event` and sets its step and wall time.

        Use it for data of TensorBoard plugins, such as a graph or hyperparameters.
        """
        ...

    def flush(self) -> None:
        """Passes everything written to the operating system."""
        ...


class Hook:
    """Base class of all hooks. Every method does nothing by default. Override the ones you need.

    The calls in training, in order:

    - `begin`: the devices are ready and input_fn has been called, but no batch has been drawn. For hooks of the
      EstimatorSpec, it is called after discovery.
    - `after_create`: the first batch has been seen, the state is initialised or restored, and output names are known.
    - `before_step`: before the step whose completion this hook waits for.
    - `after_step`: after that step.
    - `end`: always, even if another hook raised an error.

    Methods are called in the order of the hooks, including `end`. An exception names the hook, its package and the
    step. A hook that defines `state` serves one call at a time, so TrainSpec and EvalSpec need different ones.

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

    #: Stable key of the hook's state in checkpoints. Default: the class name. Hooks with the same name are numbered in
    #: list order.
    name: ClassVar[str | None] = None
    #: Where the hook runs relative to the hooks of plugins and of the call. Hooks with the same place keep their order.
    place: ClassVar[Literal["early", "normal", "late"]] = "normal"

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuses methods with reserved names that are not members: `before_*`, `after_*`, `on_*`, and members of
        earlier versions.

        Raises:
            HookError: the class defines such a method. The message names the class, the method and the remedy.
        """
        super().__init_subclass__(**arguments)
        check_members(cls)

    def begin(self, run: Run) -> None:
        """Called once before the first batch is drawn. `run` describes the call."""

    def after_create(self, run: Run) -> None:
        """Called once, when the state of `run` is ready and the first batch has been drawn."""

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
            out: outputs of the step by name, such as "loss", float32 []. Reading an output waits for the device.
        """

    def before_last_save(self, run: Run) -> None:
        """Called when training has ended without an error or interruption, after the last evaluation and before the
        last save. Variables that are replaced here are the final variables of the run.
        """

    def end(self, run: Run) -> None:
        """Called once at the end of `run`, whatever happened."""

    def next_step(self, step: int) -> int | Wake | None:
        """Returns when this hook next needs control: after a global step (> `step`), according to a `Wake`, or never
        (None).

        It is called after `after_create` and after each `after_step`. `Wake.within` counts only if the class that
        defines `after_step`, or a subclass, also defines `next_step`. Default: every step for hooks that override
        `before_step` or `after_step`, never for the others.
        """
        per_step = type(self).after_step is not Hook.after_step or type(self).before_step is not Hook.before_step
        return step + 1 if per_step else None

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Receives the outputs that `run.follow` named, some time after the steps ran.

        Steps arrive in order, and all have arrived before `end`. `values[name].shape` is `(len(steps), *shape)`. Steps
        whose outputs differ in shape arrive in separate calls. A name that these steps do not produce, because of the
        shape of their batches, is not in `values`.
        """

    def state(self) -> Mapping[str, Any]:
        """Returns everything that must survive a resume: JSON values or numpy arrays."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned. Called before `after_create` if and only if `run.resumed`."""


@runtime_checkable
class SeesBatches(Protocol):
    """An optional contract for evaluation hooks that see every batch of the input before host transforms."""

    def see(self, features: Any, labels: Any) -> None:
        """Called when a batch is drawn, in order.

        The call may come before the step of the batch and from another thread.
        """
        ...


class CheckpointPolicy:
    """Decides when checkpoints are saved, and nothing else. The training call evaluates, saves and calls listeners.

    A save on interruption, or before the error of an evaluation is raised, ignores the policy and does not shift its
    cadence. With several processes, each has its own policy, so all must decide alike.

    Example:
        >>> class PowersOfTwo(CheckpointPolicy):
        ...     def next_step(self, step):
        ...         return 2 ** step.bit_length()
        >>> [PowersOfTwo().next_step(step) for step in (0, 1, 2, 3, 4)]
        [1, 2, 4, 4, 8]
    """

    #: The key of the policy's state in checkpoints. Default: the class name.
    name: ClassVar[str | None] = None

    def at_start(self, run: Run) -> bool:
        """Returns whether to save the initial state of the run if no checkpoint contains it.

        Called once, after `restore`.
        """
        return True

    def next_step(self, step: int) -> int | Wake | None:
        """Returns when to save next: after a global step (> `step`), according to a `Wake` (`within` is ignored), or
        never (None). It is called once after `at_start`, and once after each save that it requested.
        """
        return None

    def saved(self, run: Run, step: int) -> None:
        """Called when a save that `next_step` requested begins, before its evaluations.

        `step` is the global step of `run`. The checkpoint stores the state of the policy after this call.
        """

    def at_end(self, run: Run) -> bool:
        """Returns whether to save the last step after `run` ended normally. `train_and_evaluate` always saves it."""
        return True

    def state(self) -> Mapping[str, Any]:
        """Returns everything that must survive a resume: JSON values or numpy arrays."""
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
        """The committed directory. Reading it waits for the commit."""
        ...


class CheckpointListener:
    """Runs code around each checkpoint. Listeners are called in list order.

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
        """Called after the save was started.

        Reading `checkpoint.path` waits for its commit. Return True to stop training.
        """
        return None

    def end(self, run: Run, step: int) -> None:
        """Called when training ends."""
