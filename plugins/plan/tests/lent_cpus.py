"""A backend that lends jax's CPU devices as a topology, and model_fns to plan for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.backends import DeviceFigures, Topology
from estimator_core.errors import ArgumentError, BackendUnavailableError
from estimator_core.inputs import Batch, InputPosition
from estimator_plan import Found, TrainingPlan, pipelined, plan_training

WIDTH, LAYERS = 64, 12


class LentCPUs:
    """Lends eight CPU devices as `cpux8`, and as `lostx8` eight devices whose compiler is not installed."""

    name = "lent_cpus"

    def __init__(self, memory_bytes: int = 2**30) -> None:
        self.memory_bytes = memory_bytes

    def topology_families(self) -> Sequence[str]:
        return ("cpu", "lost")

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        if len(shape) != 1:
            raise ArgumentError(f"There is no topology {family}:{shape}.")
        figures = DeviceFigures(
            kind=family,
            memory_bytes=self.memory_bytes,
            peak_flops={"float32": 1e12, "bfloat16": 4e12},
            memory_bandwidth=1e11,
            link_bandwidth=1e10,
            group_size=4,
            network_bandwidth=1e9,
            source="invented",
        )
        return Topology(name=f"{family}x{shape[0]}", device_count=shape[0], host_count=1, figures=figures)

    def topology_devices(self, topology: Topology) -> Sequence[Any]:
        if topology.figures.kind == "lost":
            raise BackendUnavailableError("the compiler is not installed. Install it.")
        return jax.devices()[: topology.device_count]


class BoundedCPUs(LentCPUs):
    """Lends devices that hold no more than CPUs do."""

    workspace_bytes = 0


class FlaggedCPUs(LentCPUs):
    """Lends devices for which a run sets compiler flags."""

    def compiler_options(self) -> Mapping[str, str | bool]:
        return {"xla_allow_excess_precision": False}


def layers_model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A scan over equal layers, with one stacked variable."""
    kernels = ec.get_variable("layers/kernel", (LAYERS, WIDTH, WIDTH), jax.nn.initializers.lecun_normal())
    hidden = jax.lax.scan(lambda carry, kernel: (jnp.tanh(carry @ kernel), None), features["x"], kernels)[0]
    loss = jnp.mean((hidden.sum(-1) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, predictions={"y": hidden}, train_op=optax.adam(1e-3))


def staged_model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """The same layers, as stages if the mesh has stages."""
    kernels = ec.get_variable("layers/kernel", (LAYERS, WIDTH, WIDTH), jax.nn.initializers.lecun_normal())
    hidden = pipelined(lambda carry, kernel: jnp.tanh(carry @ kernel), kernels, features["x"])
    loss = jnp.mean((hidden.sum(-1) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, predictions={"y": hidden}, train_op=optax.adam(1e-3))


def batch(examples: int = 64) -> Batch:
    x = np.zeros((examples, WIDTH), np.float32)
    return Batch({"x": x}, np.zeros(examples, np.float32), {}, examples, InputPosition("none", 0, 0, False, None))


def planned(
    topology: str,
    memory_bytes: int = 2**30,
    config: dict[str, Any] | None = None,
    lender: type[LentCPUs] = LentCPUs,
    **given: Any,
) -> TrainingPlan:
    backend = lender(memory_bytes)
    family, _, count = topology.rpartition("x")
    found = Found(topology=backend.topology(family, (int(count),)), backend=backend)
    estimator = ec.Estimator(layers_model_fn, config=ec.RunConfig(**(config or {})))
    return plan_training(estimator, batch(), found, **given)
