"""The encoder's variables, declared in the scope of a model_fn."""

from __future__ import annotations

from typing import Any

import jax

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.parameters import encoder_shapes

OUTPUT_WEIGHTS, OUTPUT_BIAS = "output_weights", "output_bias"


def declare_encoder(config: BertConfig) -> dict[str, Any]:
    """Declares the encoder's variables in the active scope; returns their values by name, as `encode` takes them."""
    return {
        name: ec.get_variable(name, shape, initializer_of(name, config))
        for name, shape in encoder_shapes(config).items()
    }


def declare_output(config: BertConfig, outputs: int) -> dict[str, Any]:
    """Declares the output layer: `output_weights` [outputs, hidden] and `output_bias` [outputs]."""
    return {
        OUTPUT_WEIGHTS: ec.get_variable(OUTPUT_WEIGHTS, (outputs, config.hidden_size), _normal(config)),
        OUTPUT_BIAS: ec.get_variable(OUTPUT_BIAS, (outputs,), jax.nn.initializers.zeros),
    }


def initializer_of(name: str, config: BertConfig) -> Any:
    """Ones for gamma, zeros for beta and bias, a truncated normal distribution for everything else."""
    last = name.rpartition("/")[2]
    if last == "gamma":
        return jax.nn.initializers.ones
    return jax.nn.initializers.zeros if last in ("beta", "bias") else _normal(config)


def _normal(config: BertConfig) -> Any:
    return jax.nn.initializers.truncated_normal(config.initializer_range)
