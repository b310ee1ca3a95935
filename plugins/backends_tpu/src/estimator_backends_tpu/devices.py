"""Published figures of TPU devices, by the name of their kind in jax."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from estimator_core.backends import DeviceFigures

GIB = 2**30


def _figures(
    kind: str,
    usable: float,
    bfloat16: float,
    memory_bandwidth: float,
    link_gbits: float,
    network_gbits: float,
    page: str,
) -> DeviceFigures:
    # The matrix unit multiplies bfloat16. At the default precision of jax, a float32 product is one such pass.
    return DeviceFigures(
        kind=kind,
        memory_bytes=int(usable * GIB),
        peak_flops={"bfloat16": bfloat16, "float32": bfloat16, "float16": bfloat16},
        memory_bandwidth=memory_bandwidth,
        link_bandwidth=link_gbits * 1e9 / 8,
        network_bandwidth=network_gbits * 1e9 / 8,
        source=f"Cloud TPU documentation, {page}; network: How to Scale Your Model (2025), TPU networking",
    )


#: The figures of each kind of chip. Memory is what programs can use, because the compiler reserves a part of the HBM.
FIGURES: Mapping[str, DeviceFigures] = MappingProxyType(
    {
        figures.kind: figures
        for figures in (
            _figures("TPU v5 lite", 15.75, 197e12, 819e9, 1600, 25, "TPU v5e"),
            _figures("TPU v5", 95.73, 459e12, 2765e9, 4800, 50, "TPU v5p"),
            _figures("TPU v6 lite", 31.24, 918e12, 1638e9, 3200, 100, "TPU v6e"),
        )
    }
)
