"""A run without a model: drives hooks step by step with outputs of your choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from estimator_core.errors import ArgumentError, HookError

if TYPE_CHECKING:
    import numpy as np

    from estimator_core.hooks import Hook


class RecordedSummaries:
    """Keeps summaries instead of writing them: `recorded` is a list of (kind, tag, step, value)."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, int, Any]] = []

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Records a scalar."""
        self.recorded.append(("scalar", tag, step, float(value)))

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Records a histogram."""
        self.recorded.append(("histogram", tag, step, values))

    def image(self, tag: str, image: Any, step: int) -> None:
        """Records an image."""
        self.recorded.append(("image", tag, step, image))

    def text(self, tag: str, text: str, step: int) -> None:
        """Records a text."""
        self.recorded.append(("text", tag, step, text))

    def flush(self) -> None:
        """Does nothing."""


class FakeOutputs(Mapping[str, Any]):
    """The outputs of one dispatch, computed when they are read; `read` lists what was.

    Args:
        steps: the global steps the dispatch completed.
        compute: value of every output at a global step.
    """

    def __init__(self, steps: range, compute: Mapping[str, Callable[[int], Any]]) -> None:
        self.steps = steps
        self.read: list[str] = []
        self._compute = compute

    def __getitem__(self, name: str) -> Any:
        values = self.all(name)
        return values[-1]

    def all(self, name: str) -> np.ndarray[Any, Any]:
        """The values of every step, with a leading axis of steps; they cannot be written to."""
        import numpy as np

        compute = self._compute[name]
        self.read.append(name)
        values = np.stack([np.asarray(compute(step)) for step in self.steps])
        values.flags.writeable = False
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._compute)

    def __len__(self) -> int:
        return len(self._compute)


@dataclass(kw_only=True)
class FakeRun:
    """A `Run` that nothing is behind: every property is a field you may set.

    Example:
        >>> run = FakeRun(mode="train", step=3)
        >>> run.request_stop("enough")
        >>> run.stop_reason
        'enough'
    """

    mode: str = "train"
    name: str | None = None
    step: int = 0
    first_step: int = 0
    last_step: int | None = None
    batch_size: int = 8
    model_dir: Path = Path("model_dir")
    output_names: frozenset[str] = frozenset({"loss"})
    stop_reason: str | None = None
    params: Any = None
    summaries: RecordedSummaries = field(default_factory=RecordedSummaries)
    config: Any = field(default_factory=lambda: SimpleNamespace(default_hooks=True, model_dir="model_dir"))
    fetched: list[str] = field(default_factory=list)

    @property
    def estimator(self) -> Any:
        """An object with the attributes of an Estimator that hooks look at."""
        return SimpleNamespace(config=self.config, params=self.params, model_dir=str(self.model_dir))

    def request_stop(self, reason: str) -> None:
        """Ends `drive` after the dispatch under way."""
        if not isinstance(reason, str) or not reason:
            raise HookError(f"request_stop(reason) needs a sentence that says why, given: {reason!r}")
        self.stop_reason = self.stop_reason or reason

    def fetch(self, name: str) -> None:
        """Records the name."""
        self.fetched.append(name)

    def variables(self) -> dict[str, np.ndarray[Any, Any]]:
        """Two small variables."""
        import numpy as np

        return {"dense/kernel": np.full((2, 3), float(self.step), np.float32), "dense/bias": np.zeros(3, np.float32)}


def drive(
    hooks: Sequence[Hook],
    *,
    steps: int,
    run: FakeRun | None = None,
    outputs: Mapping[str, Callable[[int], Any]] | None = None,
    steps_per_dispatch: int = 1,
    fail_at: int | None = None,
) -> FakeRun:
    """Runs hooks as a training loop does, without a model.

    Args:
        hooks: the hooks, in order.
        steps: how many steps to make.
        run: the run they see; None: a new one that starts at step 0.
        outputs: value of each output at a global step; None: a falling "loss".
        steps_per_dispatch: most steps between two moments at which hooks can act; fewer where a hook asks for a step.
        fail_at: the global step at which the loop itself raises a RuntimeError.

    Raises:
        RuntimeError: at `fail_at`, after `end` of all hooks.
    """
    run = run or FakeRun()
    compute = dict(outputs) if outputs is not None else {"loss": lambda step: 1.0 / (1 + step)}
    run.output_names, run.first_step, stop = frozenset(compute), run.step, run.step + steps
    run.last_step = stop
    _each(hooks, lambda hook: hook.begin(run))
    try:
        _each(hooks, lambda hook: hook.after_create(run))
        while run.step < stop and run.stop_reason is None:
            _dispatch(hooks, run, compute, limit=min(stop, run.step + steps_per_dispatch), fail_at=fail_at)
    finally:
        _each(hooks, lambda hook: hook.end(run))
    return run


def _dispatch(
    hooks: Sequence[Hook], run: FakeRun, compute: Mapping[str, Callable[[int], Any]], *, limit: int, fail_at: int | None
) -> None:
    wanted = {id(hook): hook.next_step(run.step) for hook in hooks}
    target = min([limit, *(step for step in wanted.values() if step is not None)])
    if target <= run.step:
        late = [type(hook).__name__ for hook in hooks if (wanted[id(hook)] or limit) <= run.step]
        raise ArgumentError(f"next_step({run.step}) of {', '.join(late)} is not after that step")
    due = [hook for hook in hooks if wanted[id(hook)] == target]
    for hook in due:
        hook.before_step(run, run.step)
    if fail_at is not None and fail_at <= target:
        raise RuntimeError(f"the loop fails at step {fail_at}")
    out = FakeOutputs(range(run.step + 1, target + 1), compute)
    run.step = target
    for hook in hooks:
        if hook.values():
            hook.on_values(run, out.steps, {name: out.all(name) for name in hook.values()})
    for hook in due:
        hook.after_step(run, target, out)


def _each(hooks: Sequence[Hook], call: Callable[[Hook], object]) -> None:
    for hook in hooks:
        call(hook)
