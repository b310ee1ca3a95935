"""The variables of the encoder, declared in the scope of a model_fn."""

from __future__ import annotations

from typing import Any

import jax

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.parameters import encoder_shapes

OUTPUT_WEIGHTS, OUTPUT_BIAS = "output_weights", "output_bias"


def declare_encoder(config: BertConfig) -> dict[str, Any]:
    """Declares the variables of the encoder in the active scope. Returns their values by name, for `encode`."""
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
    """Returns the initialiser: ones for gamma, zeros for beta and bias, otherwise a truncated normal distribution."""
    last = name.rpartition("/")[2]
    if last == "gamma":
        return jax.nn.initializers.ones
    return jax.nn.initializers.zeros if last in ("beta", "bias") else _normal(config)


def _normal(config: BertConfig) -> Any:
    return jax.nn.initializers.truncated_normal(config.initializer_range)
