"""`Estimator`: one model_fn, four verbs."""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import os
import secrets
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core._backends import Devices, select_backend
from estimator_core._builtin_hooks.history import History
from estimator_core._checkpoint import brought, latest_checkpoint
from estimator_core._files import expanded, on_one_line
from estimator_core._inputs.preparation import Preparation
from estimator_core._loop.agreement import NOBODY_ASKS, connected
from estimator_core._loop.context import CallUnderWay, RunContext, connected_context, outermost_context
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.initial_state import fresh_state, warm_start_source
from estimator_core._loop.programs import Programs
from estimator_core._loop.resuming import is_over, reached_before
from estimator_core._loop.train_arguments import TrainArguments, check_training
from estimator_core._loop.train_call import execute
from estimator_core._model_dir import agreed_model_dir, made_directory, model_dir_at
from estimator_core._moved import attributes_of
from estimator_core._plugins import Plugins, default_plugins, using_plugins
from estimator_core._step import bind_model_fn
from estimator_core._summaries import NO_SUMMARIES
from estimator_core._wrong_arguments import OF_EXPORTS, leaving_out
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.modes import ModeKeys
from estimator_core.specs import check_hooks, check_input_fn, check_listeners, check_steps

if TYPE_CHECKING:
    from estimator_core._backends import Backend
    from estimator_core._export.pending import PendingExport
    from estimator_core._inputs import Batch, InputFn
    from estimator_core._inputs.preparation import DataContract
    from estimator_core._loop.checkpointing import RunEvaluations
    from estimator_core._loop.inference_state import InferenceStates
    from estimator_core._model.initial_values import InitialValues
    from estimator_core._step import Discovery, TrainState
    from estimator_core.predictor import Predictor

__all__ = ["Estimator", "History"]

_log = logging.getLogger("estimator_core")
_OVERRIDABLE = frozenset({"model_fn", "latest_checkpoint"})


class Estimator:
    """Trains, evaluates, predicts with and exports the model that a `model_fn` describes.

    Args:
        model_fn: a function that returns an `EstimatorSpec`. It accepts `features` and any of `labels, mode, params,
            config`, by name. JAX traces it once to discover its variables, then once for each mode and batch shape.
        model_dir: directory of checkpoints, events, evaluations and exports; default: `config.model_dir`, else a
            temporary one.
        config: a `RunConfig`.
        params: a dict, an `HParams` or any other object. model_fn receives copies of it, and input_fn receives it too.
        warm_start_from: the source of the initial values: a `WarmStartSettings` or other `InitialValues`, or the path
            of a checkpoint or model_dir, which estimator-warm-start reads.
        host_transforms, label_transforms: `HostTransform`s applied on the host to the features and labels of every
            batch, before the step. Transforms in attributes of model_fn with these names are applied first.
        data_contract: an `ec.inputs.DataContract`. None: the attribute `data_contract` of model_fn, if it has one.
        plugins: the plugin registry; default: the installed plugins.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used. Nothing is written in that case.

    Example:
        >>> import estimator_core as ec
        >>> import jax.numpy as jnp, numpy as np, optax
        >>> def model_fn(features, labels, mode):
        ...     y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
        ...     if mode == ec.ModeKeys.PREDICT:
        ...         return ec.EstimatorSpec(mode, predictions={"y": y})
        ...     return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.5))
        >>> x = np.linspace(0, 1, 64, dtype=np.float32)
        >>> train = ec.inputs.numpy_input_fn({"x": x}, 3 * x + 1, batch_size=16, num_epochs=None, shuffle=True, seed=1)
        >>> estimator = ec.Estimator(model_fn, config=ec.RunConfig(tf_random_seed=1)).train(train, steps=200)
        >>> round(float(estimator.get_variable_value("slope")), 2)
        3.0

    Source: `tf.estimator.Estimator`.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: str | os.PathLike[str] | InitialValues | None = None,
        *,
        host_transforms: Sequence[Any] = (),
        label_transforms: Sequence[Any] = (),
        data_contract: DataContract | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self._refuse_overrides()
        if config is not None and not isinstance(config, RunConfig):
            raise ArgumentTypeError(f"config must be an instance of `RunConfig`, but provided {config!r}.")
        config = RunConfig() if config is None else config
        config = config.replace(model_dir=agreed_model_dir(model_dir, config.model_dir))
        self._config = config
        self._params = copy.deepcopy(params)
        self._plugins = default_plugins() if plugins is None else plugins
        self._place = model_dir_at(str(config.model_dir), self._plugins)
        self._bound = bind_model_fn(model_fn, self._params, config, self._plugins)
        self._warm_start = warm_start_source(warm_start_from, self._plugins)
        self._preparation = Preparation.of(
            model_fn, host_transforms, label_transforms, data_contract, check=config.check_inputs
        )
        self._devices = Devices(config, self._select_backend, functools.partial(connected, config, self._plugins))
        self._programs = Programs(self._bound)
        self._state = DeviceState()
        self._open = CallUnderWay()
        self._history = History()

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints, events, evaluations and exports. For a URL, the local copy that the run uses."""
        return str(self._place.path)

    @property
    def config(self) -> RunConfig:
        """The RunConfig, which cannot be changed."""
        return self._devices.config

    @property
    def params(self) -> Any:
        """A copy of params."""
        return copy.deepcopy(self._params)

    @property
    def history(self) -> History:
        """The record of the `train` and `evaluate` calls of this object."""
        return self._history

    @property
    def stop_reason(self) -> str | None:
        """The reason why the last `train` call ended."""
        return self._history.stop_reason

    @property
    def trace_counts(self) -> dict[str, int]:
        """The number of traces of model_fn, by mode and for "discovery"."""
        return dict(self._programs.traces)

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """Copies of all variables of the newest state, by path."""
        values = self._states.at_hand(self._context(ModeKeys.PREDICT)).by_path
        return {name: np.array(value) for name, value in values.items()}

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The model_fn with params bound: `(features, labels, mode, config) -> EstimatorSpec`."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> Any:
            bound = self._bound if config is None else replace(self._bound, config=config)
            return bound.spec(features, labels, mode)

        return public_model_fn

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Trains, continuing from the newest checkpoint of model_dir.

        Args:
            input_fn: the function that returns batches. It accepts any of `mode, params, config, input_context`.
            hooks: `Hook`s of this call.
            steps: steps to run in this call; not together with max_steps. Neither: training ends with the input.
            max_steps: the global step to stop at. If the run has already reached it, the call does nothing.
            saving_listeners: `CheckpointListener`s.

        Returns:
            self.

        Raises:
            ArgumentError, ArgumentTypeError: an argument cannot be used; raised before any work starts.
            PreemptedError: SIGTERM or SIGINT stopped the training. The state is saved.
        """
        return self._train(input_fn, hooks, steps, max_steps, saving_listeners, evaluations=None)

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
        *,
        slices: Sequence[Any] = (),
    ) -> dict[str, Any]:
        """Evaluates the newest state, or a checkpoint.

        Args:
            input_fn: the function that returns batches.
            steps: number of batches. None: the whole input.
            hooks: `Hook`s of this evaluation. Their steps are batches.
            checkpoint_path: a checkpoint to evaluate instead of the newest state.
            name: the name of the evaluation. Results are written to `eval_dir(name)`.
            slices: see `EvalSpec`.

        Returns:
            Metrics by name, with "loss" and "global_step".

        Raises:
            CheckpointNotFoundError: nothing has been trained (see `RunConfig(allow_untrained=True)`).
        """
        check_input_fn(input_fn)
        check_steps("steps", steps)
        checked = (*check_hooks(hooks, "hooks"), *self._slicing(slices))
        self._check_name(name)
        context = self._context(ModeKeys.EVAL, name, checkpoint_path)
        metrics = self._evaluate(context, input_fn, steps, checked, brought(checkpoint_path, self._plugins))
        self._place.written(self._devices.processes.index)
        return metrics

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Iterable[Hashable] | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Predicts, lazily: nothing runs before the first `next`.

        It uses a snapshot of the state taken at the first `next`. Training in between does not change it.

        Args:
            input_fn: the function that returns batches. Labels are dropped.
            predict_keys: keys to compute of a dict of predictions. All must exist. None or empty: all keys.
            hooks: `Hook`s of this call.
            checkpoint_path: a checkpoint to predict with instead of the newest state.
            yield_single_examples: whether to yield one example at a time (True) or whole batches (False).

        Returns:
            A generator of dicts (or arrays); `close()` stops it and its threads.
        """
        check_input_fn(input_fn)
        checked = check_hooks(hooks, "hooks")
        if isinstance(predict_keys, str):
            raise ArgumentTypeError(f"predict_keys must be a list of names, given: {predict_keys!r}.")
        here = brought(checkpoint_path, self._plugins)
        return self._predict(input_fn, tuple(predict_keys or ()), checked, here, yield_single_examples)

    def predictor(self, checkpoint_path: str | None = None) -> Predictor:
        """Returns a function from features to predictions. The model stays loaded, so calls after the first are fast.

        It uses a snapshot of the state. `predictor.refresh()` loads the newest state.
        """
        from estimator_core.predictor import Predictor

        devices = self._devices if self._open.context is None else self._open.context.devices
        checkpoint_path = brought(checkpoint_path, self._plugins)

        def state(batch: Batch) -> TrainState:
            context = replace(self._context(ModeKeys.PREDICT), devices=devices)
            return self._states.get(context, batch, checkpoint_path)

        return Predictor(devices, self._programs, state, functools.partial(self._prepared, checkpoint=checkpoint_path))

    def first_batch(self, input_fn: Callable[..., Any], hooks: Sequence[Any] | None = None) -> Batch | None:
        """Returns the first batch that `train` would draw, after transforms; None if the input is empty.

        Args:
            input_fn: the function that returns batches.
            hooks: `Hook`s of the training. `begin` of each hook is called, because hooks may prepare inputs there.

        Raises:
            ArgumentTypeError: the arguments cannot be used.

        Example:
            >>> import estimator_core as ec, numpy as np
            >>> estimator = ec.Estimator(lambda features: None, model_dir="unused")
            >>> input_fn = ec.inputs.numpy_input_fn({"x": np.zeros(64)}, batch_size=16, shuffle=False)
            >>> estimator.first_batch(input_fn).features["x"].shape
            (16,)
        """
        from estimator_core._loop.rehearsal import first_batch

        check_input_fn(input_fn)
        context = outermost_context(self, self._devices, self._params, self._plugins)  # connects no processes
        return first_batch(context, self._prepared(input_fn), check_hooks(hooks, "hooks"))

    if not TYPE_CHECKING:
        __getattr__ = attributes_of("Estimator")

    @leaving_out("export_saved_model", OF_EXPORTS)
    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
        *,
        format: str = "stablehlo",
    ) -> str:
        """Writes a time-stamped, self-contained export below `export_dir_base` and returns its path.

        Args:
            export_dir_base: the parent directory of the exports.
            serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
            assets_extra: paths of files to add, by their name in the export.
            checkpoint_path: a checkpoint to export instead of the newest state.
            experimental_mode: the mode to export.
            format: the name of an export format component.
        """
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self._start_export(export_dir_base, receivers, assets_extra, checkpoint_path, format).wait()

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None = None,
        checkpoint_path: str | None = None,
        *,
        format: str = "stablehlo",
    ) -> str:
        """Writes several modes into one export. They share their variables."""
        return self._start_export(export_dir_base, input_receiver_fn_map, assets_extra, checkpoint_path, format).wait()

    def start_export(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
        *,
        format: str = "stablehlo",
    ) -> PendingExport:
        """Like `export_saved_model`, but returns once the values are copied. `wait()` then returns the path."""
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self._start_export(export_dir_base, receivers, assets_extra, checkpoint_path, format)

    def _start_export(
        self,
        base: str,
        receivers: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None,
        checkpoint_path: str | None,
        format_name: str,
    ) -> PendingExport:
        from estimator_core._loop.export_call import ExportCall

        checkpoint_path = brought(checkpoint_path, self._plugins)
        call = ExportCall(
            context=self._context(ModeKeys.EVAL),
            programs=self._programs,
            receivers=receivers,
            assets_extra=assets_extra,
            format_name=format_name,
            host_transforms=self._preparation.exported(checkpoint_path or self.model_dir),
            label_transforms=self._preparation.exported_labels(checkpoint_path or self.model_dir),
        )
        return call.start(expanded(os.fspath(base)), self._state, self._states, checkpoint_path)

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of the results of an evaluation. It may not exist yet."""
        return str(Path(self.model_dir) / ("eval" if not name else f"eval_{name}"))

    def latest_checkpoint(self) -> str | None:
        """Returns the newest checkpoint of model_dir."""
        self._place.refresh(lambda: self._devices.processes)
        return latest_checkpoint(self.model_dir)

    def latest_export(self, name: str | None = None) -> str | None:
        """Returns the newest export below `<model_dir>/export`, or the newest export of one exporter."""
        from estimator_core._export.directories import latest_export

        self._place.refresh(lambda: self._devices.processes)
        if (newest := latest_export(Path(self.model_dir, "export", name or ""))) is not None:
            self._place.complete_export(newest)
        return newest

    def get_variable_names(self) -> list[str]:
        """Returns the names of all variables of the newest state.

        Raises:
            CheckpointNotFoundError: nothing has been trained.
        """
        return sorted(self._variables_or_entries())

    def get_variable_value(self, name: str) -> np.ndarray:
        """Returns the value of one variable of the newest state.

        Raises:
            ArgumentError: the name does not exist.
        """
        from estimator_core._checkpoint.read import ArrayEntry, load_variables

        values = self._variables_or_entries()
        if name not in values:
            step = " It is the last part of latest_checkpoint()." if name == "global_step" else ""
            raise ArgumentError(f"There is no variable {name!r}.{step} Variables: {sorted(values)}.")
        saved = isinstance(values[name], ArrayEntry)
        return load_variables(self.model_dir, [name])[name] if saved else np.array(values[name])

    def load_into(self, instance: Any, name: str) -> Any:
        """Writes trained values back into the module instance that was passed to `ec.module(instance, name=name)`.

        Returns the instance.
        """
        from estimator_core._model.module import write_back

        with using_plugins(self._plugins):
            write_back(instance, self.variables, name=name)
        return instance

    def _train(
        self,
        input_fn: Any,
        hooks: Any,
        steps: Any,
        max_steps: Any,
        saving_listeners: Any,
        *,
        evaluations: RunEvaluations | None,
    ) -> Estimator:
        check_input_fn(input_fn)
        checked_hooks, listeners = check_hooks(hooks, "hooks"), check_listeners(saving_listeners)
        steps, max_steps = check_training(self._config, checked_hooks, listeners, steps=steps, max_steps=max_steps)
        self._place.refresh(lambda: self._devices.processes)
        if is_over(self._devices, self._state, self.model_dir, max_steps, self._plugins):
            _log.info("Skipping training since max_steps has already saved.")
            self._history.stop_reason = reached_before(max_steps, self.model_dir, self._params)
            return self
        model_dir = made_directory(self.model_dir)
        vars(self).pop("_states", None)  # it may keep the state of a checkpoint, which training does not use
        with self._preparation.observing(model_dir if self._config.is_chief else None) as seeing:
            call = TrainArguments(
                context=connected_context(self, self._devices, self._params, self._plugins),
                programs=self._programs,
                state=self._state,
                fresh=self._fresh,
                entered=self._entered,
                place=self._place,
                input_fn=self._prepared(input_fn, *seeing),
                hooks=checked_hooks,
                listeners=listeners,
                steps=steps,
                max_steps=max_steps,
                evaluations=evaluations,
                seeing=seeing,
                history=self._history,
            )
            execute(call)
        self._place.written(self._devices.processes.index)
        return self

    def _prepared(self, input_fn: InputFn, *before: Any, checkpoint: str | None = None) -> InputFn:
        return self._preparation.around(input_fn, checkpoint or self.model_dir, *before)

    def _context(self, mode: str, name: str | None = None, checkpoint: str | None = None) -> RunContext:
        """Returns the context of a call: part of the call in progress, or a new one."""
        outer = self._open.context
        if outer is None:
            self._place.refresh(lambda: self._devices.processes)
        return replace(
            outer or connected_context(self, self._devices, self._params, self._plugins),
            outer=outer,
            mode=mode,
            name=name,
            directory=Path(self.eval_dir(name) if mode == ModeKeys.EVAL else self.model_dir),
            checkpoint=checkpoint,
            summaries=NO_SUMMARIES,
            decisions=NOBODY_ASKS,  # it belongs to no save, so it is not interrupted
            replaces=False,
        )

    @contextlib.contextmanager
    def _entered(self, context: RunContext) -> Generator[None]:
        """Inside the block, calls of this Estimator are part of the call of a context."""
        before, self._open.context = self._open.context, context
        try:
            with self._state.trained_here():
                yield
        finally:
            self._open.context = before

    def _evaluate(
        self,
        context: RunContext,
        input_fn: InputFn,
        steps: int | None,
        hooks: Sequence[Any],
        checkpoint_path: str | None,
    ) -> dict[str, Any]:
        from estimator_core._inputs.input_fn import shown
        from estimator_core._loop.evaluate_call import EvaluateCall

        return EvaluateCall(
            context=context,
            programs=self._programs,
            states=self._states,
            input_fn=self._prepared(shown(input_fn, hooks), checkpoint=checkpoint_path),
            steps=steps,
            hooks=hooks,
            checkpoint_path=checkpoint_path,
            history=self._history,
        ).execute()

    def _slicing(self, slices: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the hook that evaluates slices, if there are any. It is a component."""
        return (self._plugins.get("hook", self._plugins.default("hook", "slices"))(slices),) if slices else ()

    def _predict(
        self,
        input_fn: InputFn,
        predict_keys: Sequence[Hashable] | None,
        hooks: Sequence[Any],
        checkpoint_path: str | None,
        single: bool,
    ) -> Iterator[Any]:
        """Yields the predictions. Their context is the context at the first `next`."""
        from estimator_core._loop.predict_call import PredictCall
        from estimator_core._loop.predictions import ended_at_exit

        call = PredictCall(
            context=self._context(ModeKeys.PREDICT),
            programs=self._programs,
            states=self._states,
            input_fn=self._prepared(input_fn, checkpoint=checkpoint_path),
            predict_keys=predict_keys,
            hooks=hooks,
            checkpoint_path=checkpoint_path,
            single=single,
        )
        yield from ended_at_exit(call.execute())

    def _fresh(self, devices: Devices, discovery: Discovery) -> TrainState:
        """Returns a state of initial values."""
        return fresh_state(devices, self._programs, discovery, self._warm_start, self._plugins, seed=self._seed)

    @functools.cached_property
    def _states(self) -> InferenceStates:
        """The states on which evaluate, predict and export work."""
        from estimator_core._loop.inference_state import InferenceStates

        may_be_fresh = self._config.allow_untrained or self._warm_start is not None
        fresh = self._fresh if may_be_fresh else None
        return InferenceStates(self._programs, self._state, self.model_dir, fresh, self._place.agree)

    @functools.cached_property
    def _seed(self) -> int:
        """The seed of a fresh run."""
        given = self._config.tf_random_seed
        return secrets.randbits(63) if given is None else given

    def _select_backend(self, config: RunConfig) -> Backend:
        plugins = self._plugins
        return select_backend(
            config.backend, lambda name: functools.partial(plugins.make, "backend", name), plugins.automatic("backend")
        )

    def _variables_or_entries(self) -> Mapping[str, Any]:
        from estimator_core._checkpoint.read import list_variables

        if self._state.trained_elsewhere or self._state.state is None:
            newest = self.latest_checkpoint()
            if newest is not None:
                return list_variables(newest)
        return self._states.at_hand(self._context(ModeKeys.PREDICT)).by_path

    @staticmethod
    def _check_name(name: Any) -> None:
        if name is not None and (not isinstance(name, str) or "/" in on_one_line("`name`", name)):
            raise ArgumentTypeError(f"`name` must be string without '/', given: {name!r}.")

    def _refuse_overrides(self) -> None:
        public = {name for name in vars(Estimator) if not name.startswith("_")} - _OVERRIDABLE
        overridden = sorted(name for name in public if getattr(type(self), name) is not getattr(Estimator, name))
        if overridden:
            raise ArgumentError(
                f"Subclasses of Estimator cannot override members of Estimator. {type(self)} does override "
                f"{overridden}. Hooks, listeners and exporters change what happens."
            )
