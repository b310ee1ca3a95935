"""The `stablehlo` format: programs that run with any jax, and their weights."""

from estimator_exporters.stablehlo.format import StableHLOFormat as StableHLOFormat
