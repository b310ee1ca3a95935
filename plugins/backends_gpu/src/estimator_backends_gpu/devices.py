"""Published figures of NVIDIA devices, by the name of their kind in jax."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from estimator_core.backends import DeviceFigures

GIB = 2**30
#: The number of GPUs that NVLink joins in one machine. The network joins machines.
_NODE = 8


def _figures(
    kind: str,
    memory_bytes: int,
    bfloat16: float,
    tensor_float32: float,
    memory_bandwidth: float,
    link_bandwidth: float,
    network_bandwidth: float,
    source: str,
) -> DeviceFigures:
    # float32 products run as TensorFloat-32 at the default precision of jax. All figures are without sparsity.
    peaks = {"bfloat16": bfloat16, "float16": bfloat16, "float32": tensor_float32}
    return DeviceFigures(
        kind=kind,
        memory_bytes=memory_bytes,
        peak_flops=peaks,
        memory_bandwidth=memory_bandwidth,
        link_bandwidth=link_bandwidth,
        group_size=_NODE,
        network_bandwidth=network_bandwidth,
        source=source,
    )


_A100 = "NVIDIA A100 data sheet"
_H100 = "NVIDIA H100 data sheet"
#: The bytes per second that one GPU sends, with network ports of 200 Gbit/s (A100) or 400 Gbit/s (H100, H200, B200).
_HDR, _NDR = 25e9, 50e9

#: The figures of each kind of GPU, by the name that jax reports.
FIGURES: Mapping[str, DeviceFigures] = MappingProxyType(
    {
        figures.kind: figures
        for figures in (
            _figures("NVIDIA A100-SXM4-40GB", 40 * GIB, 312e12, 156e12, 1.555e12, 300e9, _HDR, _A100),
            _figures("NVIDIA A100-SXM4-80GB", 80 * GIB, 312e12, 156e12, 2.039e12, 300e9, _HDR, _A100),
            _figures("NVIDIA H100 80GB HBM3", 80 * GIB, 989.4e12, 494.7e12, 3.352e12, 450e9, _NDR, _H100),
            _figures("NVIDIA H100 PCIe", 80 * GIB, 756e12, 378e12, 2.0e12, 64e9, _NDR, _H100),
            _figures("NVIDIA H200", 141 * 10**9, 989.4e12, 494.7e12, 4.8e12, 450e9, _NDR, "NVIDIA H200 data sheet"),
            _figures("NVIDIA B200", 178 * GIB, 2250e12, 1125e12, 7.7e12, 900e9, _NDR, "NVIDIA DGX B200 data sheet"),
            _figures("NVIDIA L4", 24 * GIB, 121e12, 60e12, 300e9, 32e9, 12.5e9, "NVIDIA L4 data sheet"),
            _figures("NVIDIA L40S", 48 * GIB, 362e12, 183e12, 864e9, 32e9, _HDR, "NVIDIA L40S data sheet"),
        )
    }
)
