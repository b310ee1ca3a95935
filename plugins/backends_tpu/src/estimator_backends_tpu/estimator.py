"""`TPUEstimator`: an Estimator with global batch sizes that passes its part to each process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import estimator_core as ec
from estimator_backends_tpu.batch_sizes import BatchSizes, SizedInput
from estimator_backends_tpu.config import TPURunConfig, on_tpu
from estimator_backends_tpu.spec import TPUEstimatorSpec
from estimator_core.errors import ArgumentError, ArgumentTypeError, ModelFnError

_RESERVED = ("batch_size", "context", "use_tpu")
_ARGUMENTS = ("features", "labels", "mode", "params", "config")


class TPUEstimator(ec.Estimator):
    """An Estimator on TPUs, with the arguments of tf.estimator's. With `use_tpu=False` it runs on any device.

    The loss is logged everywhere, at `config.log_step_count_steps`. Evaluations and predictions need no number of steps
    and no padding: the last batch may be short.

    Args:
        model_fn: the model_fn, as in `Estimator`. It returns a `TPUEstimatorSpec` or an `EstimatorSpec`. Its params
            have `params["batch_size"]`, the number of examples of the batch it is traced for (all devices together),
            and `params["use_tpu"]`.
        model_dir: the model_dir, as in `Estimator`.
        config: a `TPURunConfig`. With `use_tpu`, its `tpu_config` sets the backend, the mesh and the steps per
            dispatch.
        params: a dict, or None.
        use_tpu: whether to run on TPUs, with an error if there are none. False: on the backend in `config.backend`.
        train_batch_size, eval_batch_size, predict_batch_size: the examples of a batch, all processes together.
            `params["batch_size"]` of an input_fn is the part of its process.
        warm_start_from: the source of initial values, as in `Estimator`.
        batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, embedding_config_spec: accepted only with their default
            values. An export runs on every platform.
        options: the further arguments of `Estimator`: host_transforms, label_transforms, plugins.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimator`.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: TPURunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: None = None,
        **options: Any,
    ) -> None:
        if not isinstance(config, TPURunConfig):
            raise ArgumentTypeError("`config` must be provided with type `TPURunConfig`.")
        _only_default(
            {
                "batch_axis": (batch_axis, None, "the first axis is the batch"),
                "eval_on_tpu": (eval_on_tpu, True, "evaluate with an Estimator of another backend instead"),
                "export_to_tpu": (export_to_tpu, True, "an export runs on every platform"),
                "export_to_cpu": (export_to_cpu, True, "an export runs on every platform"),
                "embedding_config_spec": (embedding_config_spec, None, "use ec.sparse_lookup and partition rules"),
            }
        )
        given = dict(params or {})
        taken = [name for name in _RESERVED if name in given]
        if taken:
            raise ArgumentError(f"{list(_RESERVED)} are reserved keys but existed in params {given}.")
        self._sizes = BatchSizes(train=train_batch_size, eval=eval_batch_size, infer=predict_batch_size)
        every = config.tpu_config.experimental_host_call_every_n_steps
        super().__init__(
            _adapted(model_fn, self._sizes, every),
            model_dir=model_dir,
            config=on_tpu(config) if use_tpu else config,
            params={**given, "use_tpu": use_tpu},
            warm_start_from=warm_start_from,
            **options,
        )

    def _prepared(
        self, input_fn: Callable[..., Any], *before: Any, checkpoint: str | None = None
    ) -> Callable[..., Any]:
        sized = SizedInput(input_fn=input_fn, sizes=self._sizes)
        return super()._prepared(sized, *before, checkpoint=checkpoint)


def _adapted(model_fn: Any, sizes: BatchSizes, host_call_every_n_steps: int) -> Callable[..., Any]:
    """Returns a model_fn with an EstimatorSpec, around one that may return a TPUEstimatorSpec."""
    if not callable(model_fn):
        raise ArgumentTypeError(f"model_fn must be a function (features, labels, mode, params), given: {model_fn!r}.")
    taken = [name for name in inspect.signature(model_fn).parameters if name in _ARGUMENTS]
    if "features" not in taken:
        raise ArgumentError(f"model_fn ({model_fn!r}) must include features argument.")

    def adapted(features: Any, labels: Any, mode: str, params: Any, config: Any) -> ec.EstimatorSpec:
        if labels is not None and "labels" not in taken:
            raise ModelFnError("model_fn does not take labels, but input_fn returns labels.")
        sizes.check(mode, features)
        given = {
            "features": features,
            "labels": labels,
            "mode": mode,
            "params": sizes.added(params, mode),
            "config": config,
        }
        spec: Any = model_fn(**{name: given[name] for name in taken})
        if isinstance(spec, TPUEstimatorSpec):
            return spec.as_estimator_spec(host_call_every_n_steps=host_call_every_n_steps)
        return spec

    for name in ("host_transforms", "label_transforms", "data_contract"):
        if hasattr(model_fn, name):
            setattr(adapted, name, getattr(model_fn, name))
    return adapted


def _only_default(given: Mapping[str, tuple[Any, Any, str]]) -> None:
    for name, (value, default, instead) in given.items():
        if value is not default:
            raise ArgumentError(f"TPUEstimator accepts only {name}={default!r}, given: {value!r}; {instead}.")
