"""Random training programs: a seed determines layers, widths, optimizer, precision and split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from plugins.backends_gpu.tests.separate.bound_programs import Program

Layer = Callable[[str, Any], Any]


def random_program(seed: int) -> Program:
    """Returns the program of a seed."""
    rng = np.random.default_rng(seed)
    sequences = bool(rng.integers(2))
    names = [str(rng.choice(SEQUENCE_LAYERS if sequences else VECTOR_LAYERS)) for _ in range(rng.integers(3, 8))]
    width = int(rng.choice([512, 1024, 1536] if sequences else [1024, 2048, 4096]))
    length = int(rng.choice([64, 96, 128])) if sequences else 0
    layers = [LAYERS[name](width) for name in names]
    optimizers = (optax.adam(1e-3), optax.sgd(0.1), optax.sgd(0.1, 0.9), optax.lion(1e-4), optax.adafactor(1e-3))
    optimizer = optimizers[rng.integers(len(optimizers))]

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        x = features["x"] @ _kernel("in", 128, width)
        for place, layer in enumerate(layers):
            x = layer(f"{place}", x)
        logits = (x.mean(1) if sequences else x) @ _kernel("out", width, 10)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optimizer)

    config: dict[str, Any] = {"precision": str(rng.choice(["float32", "bfloat16"]))}
    if rng.integers(4) == 0:
        config["accumulate_steps"] = 2
    return Program(
        model_fn=model_fn,
        features={"x": np.zeros((8, length, 128) if sequences else (8, 128), np.float32)},
        labels=np.zeros(8, np.int32),
        batch_size=int(rng.choice([256, 512, 1024])) if sequences else int(rng.choice([8192, 16384, 32768])),
        split=str(rng.choice(["data", "zero1", "fsdp"])),
        config=config,
    )


def _kernel(name: str, *shape: int) -> jax.Array:
    return ec.get_variable(name, shape, jax.nn.initializers.normal(0.02))


def _dense(activation: Callable[[Any], Any]) -> Callable[[int], Layer]:
    return lambda width: lambda name, x: activation(x @ _kernel(f"dense{name}", width, width))


def _residual(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        return x + jax.nn.gelu(x @ _kernel(f"up{name}", width, 2 * width)) @ _kernel(f"down{name}", 2 * width, width)

    return layer


def _gate(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        return x * jax.nn.sigmoid(x @ _kernel(f"gate{name}", width, width)) + jnp.cumsum(x, -1) * 0.01

    return layer


def _norm(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        scaled = (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-6)
        return scaled * ec.get_variable(f"scale{name}", (width,), jax.nn.initializers.ones)

    return layer


def _dropout(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        return jnp.where(jax.random.bernoulli(ec.next_rng_key(f"drop{name}"), 0.8, x.shape), x / 0.8, 0)

    return layer


def _stack(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        kernels = _kernel(f"stack{name}", 4, width, width)
        return jax.lax.scan(lambda x, kernel: (x + jnp.tanh(x @ kernel), None), x, kernels)[0]

    return layer


def _attention(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        q, k, v = jnp.split(x @ _kernel(f"qkv{name}", width, 3 * width), 3, axis=-1)
        heads = [each.reshape(*each.shape[:2], 8, width // 8) for each in (q, k, v)]
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", *heads[:2]) / float(width // 8) ** 0.5, axis=-1)
        return x + jnp.einsum("bhqk,bkhd->bqhd", weights, heads[2]).reshape(x.shape)

    return layer


def _skip(width: int) -> Layer:
    def layer(name: str, x: Any) -> Any:
        other = jnp.sort(x, -1)[..., ::-1]
        return jnp.concatenate([x, other], -1) @ _kernel(f"skip{name}", 2 * width, width)

    return layer


LAYERS: dict[str, Callable[[int], Layer]] = {
    "relu": _dense(jax.nn.relu),
    "gelu": _dense(jax.nn.gelu),
    "tanh": _dense(jnp.tanh),
    "residual": _residual,
    "gate": _gate,
    "norm": _norm,
    "dropout": _dropout,
    "stack": _stack,
    "skip": _skip,
    "attention": _attention,
}
VECTOR_LAYERS = sorted(LAYERS.keys() - {"attention"})
SEQUENCE_LAYERS = sorted(LAYERS)
