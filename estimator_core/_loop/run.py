"""The run that a hook sees: an `estimator_core.hooks.Run`, which the loops create."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core._cluster.processes import gather
from estimator_core._inputs import BatchSource, InputContext, InputFn, InputPosition, open_input
from estimator_core._inputs.input_fn import WrappedInput
from estimator_core._inputs.normalise import split_element
from estimator_core._loop.device_state import DeviceState, whole_on_host
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.time_spent import STEP, TimeSpent
from estimator_core._plugins.discovery import noting_origin, package_of_code
from estimator_core._step.state import TrainState
from estimator_core._summaries import plain_metrics
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import HookError
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._loop.context import RunContext
    from estimator_core._metrics.base import Metric

_log = logging.getLogger("estimator_core")


def _transformed(function: Callable[[Any, Any], tuple[Any, Any]], features: Any, labels: Any) -> tuple[Any, Any]:
    def told() -> str:
        origin = function if hasattr(function, "__qualname__") else type(function)
        return f"{origin.__qualname__} from {package_of_code(origin.__module__)}, which was passed to transform_batches"

    with noting_origin(lambda: f"in {told()}"):
        pair: object = function(features, labels)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise HookError(f"{told()}, returned {pair!r:.200}; it must return a pair (features, labels).")
    return pair[0], pair[1]


class LoopRun:
    """One train, evaluate or predict call, in the form that its hooks see.

    The loop changes the public attributes. Hooks only read them.

    Args:
        context: the context of the call.
        live: the state of the call.
        last_step: the last step of the call. None: no limit.
    """

    def __init__(self, context: RunContext, live: DeviceState, *, last_step: int | None = None) -> None:
        self.context = context
        self.mode = context.mode
        self.name = context.name
        self.estimator = context.estimator
        self.config = context.config
        self.params = context.params
        self.model_dir = context.directory
        self.summaries = context.summaries
        self.live = live
        self.step = self.first_step = live.step
        self.last_step = last_step
        self.batch_size = 0
        self.batch: Any = None
        self.output_names: frozenset[str] = frozenset()
        self.output_kinds: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.resumed = False
        self.failed = False
        self.interrupted = False
        self.fetches: set[str] = set()
        self.followed: list[str] = []
        self.time_spent = TimeSpent()
        self.hook_seconds: dict[str, float] = {}
        self.count_flops: Callable[[], float | None] = lambda: None
        self.batch_metrics: Callable[[Any, Any, Any, Any], dict[str, Metric]] = _no_metrics
        self.input_part: tuple[int, int] = (0, 1)
        self.input_rows: Callable[[int], np.ndarray] = np.arange
        self.results: dict[str, Any] = {}
        self._batch_functions: list[Callable[[Any, Any], tuple[Any, Any]]] = []
        self._may_fetch = True
        #: The reason of the requested stop. It is an attribute because it is read at every step.
        self.stop_reason: str | None = None
        self._drawn = False

    def advance(self, dispatch: Dispatch) -> None:
        """Counts a dispatch that was sent to the device."""
        self.step += dispatch[3]
        self.batch_size = dispatch[4].size

    def request_stop(self, reason: str = "requested by a hook") -> None:
        """Ends the loop after the current dispatch. The first reason is kept."""
        if self.stop_reason is None:
            self.stop_reason = reason
            if self.mode == ModeKeys.TRAIN:
                _log.info("Stop requested at step %d: %s", self.step, reason)

    def stopped(self, reason: str) -> None:
        """Records the reason why the loop ended without a request."""
        if self.stop_reason is None:
            self.stop_reason = reason

    def add_result(self, name: str, value: Any) -> None:
        """Adds a value to the results of an evaluation."""
        try:
            json.dumps(plain_metrics({name: value if np.ndim(value) else float(value)}))
        except (TypeError, ValueError) as error:
            raise HookError(f"Result {name!r} must be a number, an array or a list of JSON, not {value!r}.") from error
        self.results[name] = value

    def fetch(self, name: str) -> None:
        """Declares, in `begin` or `after_create`, that `out[name]` of a non-scalar output will be read."""
        if not self._may_fetch and name not in self.fetches:
            raise HookError(f"fetch({name!r}) must be in `begin` or `after_create`: the step is compiled already.")
        self.fetches.add(name)

    def seal_fetches(self, processes: Coordinator = ALONE) -> frozenset[str]:
        """Ends the time for `fetch`.

        Returns the names that hooks of any of these processes requested or follow, because all processes run the same
        program.
        """
        self._may_fetch = False
        own = self.fetches.union(self.output_names.intersection(self.followed))
        return frozenset().union(*gather(processes, "fetches", sorted(own)))

    def follow(self, name: str) -> None:
        """Declares, in `begin` or `after_create`, that the hook needs the output `name` of every step."""
        self.followed.append(name)

    def transform_batches(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        """Declares, in `begin`, that `function(features, labels) -> (features, labels)` transforms every batch."""
        if self._drawn:
            raise HookError(
                "transform_batches must be called in `begin`, by a hook of the call: a batch has already been drawn."
            )
        self._batch_functions.append(function)

    def open(
        self, input_fn: InputFn, context: InputContext | None = None, position: InputPosition | None = None
    ) -> BatchSource:
        """Opens an input of the call.

        Its elements go through the functions that hooks declare with `transform_batches`.

        Args:
            input_fn: the input.
            context: the shard of this process. None: all data.
            position: the position at which to continue. None: the start.
        """
        functions = self._batch_functions
        if context is not None:
            self.input_part = context.input_pipeline_id, context.num_input_pipelines
            self.input_rows = context.rows

        def convert(element: object) -> Any:
            features, labels = split_element(element)
            for function in functions:
                features, labels = _transformed(function, features, labels)
            return features if labels is None else (features, labels)

        def needed() -> bool:
            self._drawn = True
            return bool(functions)

        wrapped = WrappedInput(input_fn=input_fn, convert=convert, needed=needed)
        mode, params, config = self.mode, self.params, self.config
        return open_input(wrapped, mode=mode, params=params, config=config, input_context=context, position=position)

    @property
    def seconds(self) -> Mapping[str, float]:
        """The seconds of a training call so far, by activity."""
        self.time_spent.change(self.time_spent.change(STEP))
        return dict(self.time_spent.seconds)

    @property
    def activity(self) -> str:
        """The current activity."""
        return self.time_spent.entry

    def step_flops(self) -> float | None:
        """Returns the number of floating point operations of one training step."""
        return self.count_flops()

    def variables(self) -> dict[str, np.ndarray]:
        """Returns a host copy of the trainable variables, by path. With several processes, all of them must call it."""
        return {name: whole_on_host(value) for name, value in self.live.ready.variables.items()}

    @property
    def state(self) -> TrainState:
        """The state on the devices. The next training step donates it, so do not keep any part of it."""
        return self.live.ready

    def assign(self, values: Mapping[str, object]) -> None:
        """Replaces variables and model state by path. The next step starts from the new values."""
        self.live.assign(values)

    def swapped(self, values: Mapping[str, object]) -> AbstractContextManager[None]:
        """Inside the block, evaluations use other values of some trainable variables."""
        return self.live.swapped(values)


def _no_metrics(state: object, features: object, labels: object, weights: object) -> dict[str, Metric]:
    raise HookError("batch_metrics exists only in evaluations, from `after_create` on.")
