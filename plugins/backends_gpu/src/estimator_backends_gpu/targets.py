"""Descriptions of GPUs from which XLA compiles without a GPU, and the topologies made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypedDict


@dataclass(frozen=True, kw_only=True)
class Target:
    """The properties of a GPU that XLA needs to compile for it.

    Attributes:
        kind: the name of the device kind in jax.
        cores: the number of streaming multiprocessors.
        clock_ghz: the clock frequency of the multiprocessors, in GHz.
        memory_bytes, memory_bandwidth, l2_bytes: the bytes, bytes per second and cache bytes of the GPU.
        shared_per_core, shared_per_block: the bytes of shared memory of a multiprocessor, and the most for one block.
        fpus_per_core: the number of float32 units of a multiprocessor.
        capability: the compute capability, (major, minor).
        features: the name that XLA has for instructions beyond the capability.
    """

    kind: str
    cores: int
    clock_ghz: float
    memory_bytes: int
    memory_bandwidth: int
    l2_bytes: int
    shared_per_core: int
    shared_per_block: int
    fpus_per_core: int
    capability: tuple[int, int]
    features: str

    def text(self) -> str:
        """Returns the text of the GpuTargetConfigProto of XLA."""
        major, minor = self.capability
        return f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: {self.shared_per_core}
  shared_memory_per_block_optin: {self.shared_per_block}
  core_count: {self.cores} fpus_per_core: {self.fpus_per_core} clock_rate_ghz: {self.clock_ghz}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  memory_bandwidth: {self.memory_bandwidth} device_memory_size: {self.memory_bytes} l2_cache_size: {self.l2_bytes}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {self.features} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
device_description_str: "{self.kind}"
"""


class _Chip(TypedDict):
    """The properties that the GPUs of a generation share."""

    cores: int
    clock_ghz: float
    l2_bytes: int
    shared_per_core: int
    shared_per_block: int
    fpus_per_core: int
    capability: tuple[int, int]
    features: str


_HOPPER: _Chip = {
    "cores": 132,
    "clock_ghz": 1.98,
    "l2_bytes": 52428800,
    "shared_per_core": 233472,
    "shared_per_block": 232448,
    "fpus_per_core": 128,
    "capability": (9, 0),
    "features": "ACCELERATED_FEATURES",
}
_AMPERE: _Chip = {
    "cores": 108,
    "clock_ghz": 1.41,
    "l2_bytes": 41943040,
    "shared_per_core": 167936,
    "shared_per_block": 166912,
    "fpus_per_core": 64,
    "capability": (8, 0),
    "features": "NONE",
}
_BLACKWELL: _Chip = {
    "cores": 148,
    "clock_ghz": 1.965,
    "l2_bytes": 132644864,
    "shared_per_core": 233472,
    "shared_per_block": 232448,
    "fpus_per_core": 128,
    "capability": (10, 0),
    "features": "ACCELERATED_FEATURES",
}

#: The descriptions by the family that users write in `--topology`.
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "a100": Target(
            kind="NVIDIA A100-SXM4-80GB", memory_bytes=85100068864, memory_bandwidth=2039040000000, **_AMPERE
        ),
        "h100": Target(
            kind="NVIDIA H100 80GB HBM3", memory_bytes=84942979072, memory_bandwidth=3352320000000, **_HOPPER
        ),
        "h200": Target(kind="NVIDIA H200", memory_bytes=151397597184, memory_bandwidth=4800000000000, **_HOPPER),
        "b200": Target(kind="NVIDIA B200", memory_bytes=191514411008, memory_bandwidth=7672320000000, **_BLACKWELL),
    }
)
