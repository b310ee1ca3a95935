"""`TPUConfig`, and the RunConfig that contains it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, ArgumentTypeError

_CORES = (1, 2, 4, 8, 16, 32, 64, 128)


class InputPipelineConfig:
    """The part of a batch that one call of input_fn returns.

    Source: `tf.compat.v1.estimator.tpu.InputPipelineConfig`.
    """

    PER_SHARD_V1: Final = 1
    PER_HOST_V1: Final = 2
    PER_HOST_V2: Final = 3
    BROADCAST: Final = 4
    SLICED: Final = 5


_PER_HOST = (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2)


@dataclass(frozen=True, kw_only=True)
class TPUConfig:
    """The TPU part of a `TPURunConfig`.

    Args:
        iterations_per_loop: the training steps that one call of the device program runs, or "auto", which measures.
            Hooks, log lines and checkpoints miss no step with any value.
        num_shards: the number of replicas that a batch is split over. None: all devices, divided by
            num_cores_per_replica.
        num_cores_per_replica: the number of devices that together hold one replica of the model: the size of the mesh
            axis "model", which partition rules may name. None: 1.
        per_host_input_for_training: True or `InputPipelineConfig.PER_HOST_V1` / `PER_HOST_V2`: input_fn is called once
            per process, and returns the part of the batch for the process.
        experimental_host_call_every_n_steps: the steps between two calls of a spec's host_call.
        input_partition_dims: only None. The error about another value names the replacement.

    Raises:
        ArgumentError: a value cannot be used. The message names the replacement.

    Example:
        >>> TPUConfig(iterations_per_loop=100).iterations_per_loop
        100

    Source: `tf.compat.v1.estimator.tpu.TPUConfig`.
    """

    iterations_per_loop: int | Literal["auto"] = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: bool | int = True
    experimental_host_call_every_n_steps: int = 1
    input_partition_dims: None = None

    def __post_init__(self) -> None:
        loop = self.iterations_per_loop
        if loop != "auto" and not _is_count(loop):
            raise ArgumentError(
                f'TPUConfig: iterations_per_loop must be an int >= 1 or "auto", given: {loop!r}. A time such as "30s" '
                'is not accepted: "auto" measures the best number.'
            )
        if self.num_shards is not None and not _is_count(self.num_shards):
            raise ArgumentError(f"TPUConfig: num_shards must be an int >= 1 or None, given: {self.num_shards!r}.")
        if self.num_cores_per_replica is not None and self.num_cores_per_replica not in _CORES:
            raise ArgumentError(
                f"TPUConfig: num_cores_per_replica must be one of {list(_CORES)} or None, given: "
                f"{self.num_cores_per_replica!r}."
            )
        given = self.per_host_input_for_training
        if given is not True and (isinstance(given, bool) or given not in _PER_HOST):  # True == PER_SHARD_V1
            raise ArgumentError(
                "TPUConfig: input_fn is called once per process and returns that process's part of the batch "
                f"(per_host_input_for_training=True, PER_HOST_V1 or PER_HOST_V2), given: {given!r}."
            )
        if not _is_count(self.experimental_host_call_every_n_steps):
            raise ArgumentError(
                "TPUConfig: experimental_host_call_every_n_steps must be an int >= 1, given: "
                f"{self.experimental_host_call_every_n_steps!r}."
            )
        if self.input_partition_dims is not None:
            raise ArgumentError(
                "TPUConfig no longer takes input_partition_dims: model_fn places its arrays on the mesh, with "
                "jax.lax.with_sharding_constraint."
            )


@dataclass(frozen=True, kw_only=True)
class TPURunConfig(RunConfig):
    """A RunConfig with a `TPUConfig`.

    Args:
        tpu_config: the TPU part. All other arguments are those of `estimator_core.RunConfig`.

    Example:
        >>> config = TPURunConfig(model_dir="runs/one", tpu_config=TPUConfig(iterations_per_loop=50))
        >>> config.replace(save_checkpoints_steps=100).tpu_config.iterations_per_loop
        50

    Source: `tf.compat.v1.estimator.tpu.RunConfig`.
    """

    tpu_config: TPUConfig = field(default_factory=TPUConfig)

    def __new__(cls, *args: Any, **given: Any) -> TPURunConfig:
        """Refuses the arguments that named addresses, with an error that names their replacement."""
        for name in ("master", "evaluation_master", "cluster"):
            if name in given:
                raise ArgumentError(f"TPURunConfig no longer takes {name!r}: the machines of a pod find each other.")
        return super().__new__(cls, *args, **given)  # type: ignore[return-value]

    def __post_init__(self) -> None:
        if not isinstance(self.tpu_config, TPUConfig):
            raise ArgumentTypeError(f"tpu_config must be a TPUConfig, given: {self.tpu_config!r}.")
        super().__post_init__()

    def replace(self, **changes: Any) -> TPURunConfig:
        """Returns a validated copy with some fields changed."""
        tpu_config = changes.pop("tpu_config", self.tpu_config)
        names = [each.name for each in fields(RunConfig)]
        plain = RunConfig(**{name: getattr(self, name) for name in names}).replace(**changes)
        return TPURunConfig(tpu_config=tpu_config, **{name: getattr(plain, name) for name in names})


TPURunConfig.__new__.__signature__ = inspect.signature(TPURunConfig.__init__).replace(return_annotation="TPURunConfig")  # type: ignore[attr-defined]


def on_tpu(config: TPURunConfig) -> TPURunConfig:
    """Returns the same run on TPUs: the TPUConfig sets backend, mesh and steps per dispatch, unless the RunConfig does.

    Example:
        >>> changed = on_tpu(TPURunConfig(tpu_config=TPUConfig(iterations_per_loop=100, num_cores_per_replica=4)))
        >>> changed.backend, changed.mesh, changed.steps_per_dispatch
        ('tpu', {'data': -1, 'model': 4}, 100)
    """
    tpu = config.tpu_config
    mesh: Mapping[str, int] | None = config.mesh
    if mesh is None:
        mesh = {"data": tpu.num_shards or -1}
        if tpu.num_cores_per_replica is not None and tpu.num_cores_per_replica > 1:
            mesh = {**mesh, "model": tpu.num_cores_per_replica}
    return config.replace(backend="tpu", mesh=mesh, steps_per_dispatch=tpu.iterations_per_loop)


def _is_count(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and value >= 1
