"""The small parts of the encoder: dense layers, layer normalisation, dropout, activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from estimator_canned_bert.encoder.random_bits import bits_of_16


def dense(parameters: Mapping[str, Any], path: str, inputs: jax.Array) -> jax.Array:
    """Returns `inputs @ kernel + bias` in the dtype of the inputs, plus low-rank additions if there are any.

    Args:
        parameters: the arrays by name. `<path>/lora_a` [in, rank] and `<path>/lora_b` [rank, out] are optional.
        path: the path of the layer.
        inputs: the inputs, [..., in].
    """
    dtype = inputs.dtype
    outputs = inputs @ parameters[f"{path}/kernel"].astype(dtype)
    low_rank = parameters.get(f"{path}/lora_a")
    if low_rank is not None:
        outputs = outputs + (inputs @ low_rank.astype(dtype)) @ parameters[f"{path}/lora_b"].astype(dtype)
    return outputs + parameters[f"{path}/bias"].astype(dtype)


def layer_norm(parameters: Mapping[str, Any], path: str, inputs: jax.Array, epsilon: float) -> jax.Array:
    """Normalises over the last axis in float32. Returns the dtype of the inputs."""
    wide = inputs.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    centred = wide - mean
    variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
    normal = centred * jax.lax.rsqrt(variance + epsilon)
    return (normal * parameters[f"{path}/gamma"] + parameters[f"{path}/beta"]).astype(inputs.dtype)


def dropout(inputs: jax.Array, rate: float, key: jax.Array | None) -> jax.Array:
    """Sets a share of the values to zero and scales the others up. Without a key, it returns the inputs.

    The share equals `rate` to within 2**-16, because masks use 16 random bits per value.
    """
    if key is None or rate == 0.0:
        return inputs
    keep = bits_of_16(key, inputs.shape) >= jnp.uint16(min(round(rate * 65536), 65535))
    return jnp.where(keep, inputs * jnp.asarray(1.0 / (1.0 - rate), inputs.dtype), jnp.zeros((), inputs.dtype))


def activation(name: str) -> Callable[[jax.Array], jax.Array]:
    """Returns the activation function of a configuration.

    The backward pass computes the parts of a GELU again, because each is as large as the widest array of a layer.
    """
    return {
        "gelu": jax.checkpoint(lambda x: jax.nn.gelu(x, approximate=False)),
        "gelu_new": jax.checkpoint(lambda x: jax.nn.gelu(x, approximate=True)),
        "relu": jax.nn.relu,
        "tanh": jnp.tanh,
        "linear": lambda x: x,
    }[name]
