"""The `stablehlo` format: programs that any jax runs, beside their weights."""

from estimator_exporters.stablehlo.format import StableHLOFormat as StableHLOFormat
