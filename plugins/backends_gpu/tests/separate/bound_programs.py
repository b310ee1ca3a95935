"""Different kinds of training programs, on which the compiler-free bound of a plan is compared with the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core.inputs import Batch, InputPosition

ModelFn = Callable[..., ec.EstimatorSpec]
_NONE: Mapping[str, Any] = MappingProxyType({})
_SPLITS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "data": {"mesh": {"data": -1}},
        "zero1": {"mesh": {"data": -1}, "partition_rules": [(".*", ec.FullySharded(slots_only=True))]},
        "fsdp": {"mesh": {"data": 1, "fsdp": -1}, "partition_rules": [(".*", ec.FullySharded("fsdp"))]},
    }
)


@dataclass(frozen=True, kw_only=True)
class Program:
    """A model, its batch, and its split over the devices.

    Attributes:
        model_fn: the model.
        features, labels: one small batch, of which only shapes and dtypes matter.
        batch_size: the number of examples of the global batch.
        split: "data", "zero1" or "fsdp".
        config: further fields of the RunConfig.
    """

    model_fn: ModelFn
    features: Mapping[str, np.ndarray]
    labels: np.ndarray
    batch_size: int
    split: str
    config: Mapping[str, Any] = field(default_factory=dict)

    def estimator(self) -> ec.Estimator:
        """Returns an Estimator of this program that writes nothing."""
        return ec.Estimator(
            self.model_fn, config=ec.RunConfig(default_hooks=False, **{**_SPLITS[self.split], **self.config})
        )

    def batch(self) -> Batch:
        """Returns eight examples."""
        return Batch(dict(self.features), self.labels, {}, 8, InputPosition("zeros", 0, 0, False, None))


def _spec(mode: str, loss: Any, optimizer: Any = None) -> ec.EstimatorSpec:
    return ec.EstimatorSpec(mode, loss=loss, train_op=optimizer or optax.adam(1e-3))


def _kernel(name: str, *shape: int) -> jax.Array:
    return ec.get_variable(name, shape, jax.nn.initializers.normal(0.02))


def mlp(width: int, layers: int, activation: Callable[[Any], Any] = jax.nn.relu, optimizer: Any = None) -> ModelFn:
    """Layers of one width, each with its own variable."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        hidden = features["x"]
        for layer in range(layers):
            hidden = activation(hidden @ _kernel(f"l{layer}/kernel", hidden.shape[-1], width))
        logits = hidden @ _kernel("out", width, 10)
        return _spec(mode, optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), optimizer)

    return model_fn


def _norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-6)


def _block(x: Any, w: Mapping[str, Any], heads: int) -> Any:
    batch, length, width = x.shape
    q, k, v = jnp.split((_norm(x) @ w["qkv"]).reshape(batch, length, heads, -1), 3, axis=-1)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / float(np.sqrt(width // heads)), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ w["out"]
    return x + jax.nn.gelu(_norm(x) @ w["up"]) @ w["down"]


def transformer(width: int, layers: int, heads: int = 8, vocabulary: int = 8192, *, scan: bool = True) -> ModelFn:
    """A language model whose layers share one stacked variable, or have their own variables."""
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        tokens = features["tokens"]
        table = _kernel("table", vocabulary, width)
        x = table[tokens]
        if scan:
            stacked = {name: _kernel(f"layers/{name}", layers, *shape) for name, shape in shapes.items()}
            x = jax.lax.scan(lambda x, w: (_block(x, w, heads), None), x, stacked)[0]
        else:
            for layer in range(layers):
                x = _block(x, {name: _kernel(f"l{layer}/{name}", *shape) for name, shape in shapes.items()}, heads)
        logits = _norm(x) @ table.T
        loss = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()
        return _spec(mode, loss + 0.0 * labels.astype(logits.dtype).sum())

    return model_fn


def convnet(channels: int, blocks: int, *, batch_norm: bool = False, pool: bool = False) -> ModelFn:
    """A network of residual convolutions."""

    def conv(x: Any, kernel: Any, stride: int = 1) -> Any:
        return jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        x = conv(features["image"], _kernel("stem", 3, 3, 3, channels))
        width = channels
        for block in range(blocks):
            for part in range(2):
                y = jax.nn.relu(_batch_norm(x) if batch_norm else x)
                x = x + conv(y, _kernel(f"b{block}/{part}", 3, 3, width, width))
            if pool:
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
            else:
                x = conv(x, _kernel(f"b{block}/down", 3, 3, width, 2 * width), 2)
                width *= 2
        logits = x.mean((1, 2)) @ _kernel("out", width, 10)
        return _spec(mode, optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), optax.sgd(0.1, 0.9))

    return model_fn


def _batch_norm(x: Any) -> Any:
    mean = x.mean((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5)


def recurrent(width: int) -> ModelFn:
    """A gated recurrent network: a scan over time."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        gates = _kernel("gates", 2 * width, 2 * width)
        new = _kernel("new", 2 * width, width)

        def cell(h: Any, x: Any) -> tuple[Any, None]:
            z, r = jnp.split(jax.nn.sigmoid(jnp.concatenate([h, x], -1) @ gates), 2, -1)
            return (1 - z) * h + z * jnp.tanh(jnp.concatenate([r * h, x], -1) @ new), None

        x = features["x"] @ _kernel("in", features["x"].shape[-1], width)
        h = jax.lax.scan(cell, jnp.zeros_like(x[:, 0]), jnp.swapaxes(x, 0, 1))[0]
        logits = h @ _kernel("out", width, 10)
        return _spec(mode, optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean())

    return model_fn


def table(rows: int, columns: int) -> ModelFn:
    """A table of which each batch reads some rows."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        found = ec.sparse_lookup("table", features["ids"], (rows, columns)).reshape(features["ids"].shape[0], -1)
        hidden = jax.nn.relu(found @ _kernel("hidden", found.shape[-1], 1024))
        return _spec(mode, ((hidden @ _kernel("out", 1024, 1))[:, 0] - labels).__pow__(2).mean(), optax.adagrad(0.1))

    return model_fn


def two_towers(width: int, layers: int) -> ModelFn:
    """Compares every example with every other example of the global batch."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        def tower(name: str, x: Any) -> Any:
            for layer in range(layers):
                x = jax.nn.gelu(x @ _kernel(f"{name}{layer}", x.shape[-1], width))
            return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

        scores = tower("left", features["x"]) @ tower("right", features["x"] ** 2).T * 20
        loss = -jnp.diag(jax.nn.log_softmax(scores)).mean()
        return _spec(mode, loss + 0.0 * labels.sum())

    return model_fn


def unet(channels: int, depth: int) -> ModelFn:
    """The way up reads values from the way down again."""

    def conv(name: str, x: Any, width: int, stride: int = 1) -> Any:
        kernel = _kernel(name, 3, 3, x.shape[-1], width)
        found = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jax.nn.silu(found)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        x, kept = conv("stem", features["image"], channels), []
        for level in range(depth):
            kept.append(x)
            x = conv(f"down{level}", x, 2 * x.shape[-1], 2)
        for level in reversed(range(depth)):
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = conv(f"up{level}", jnp.concatenate([x, kept.pop()], -1), x.shape[-1] // 2)
        return _spec(mode, ((conv("out", x, 3) - features["image"]) ** 2).mean() + 0.0 * labels.sum())

    return model_fn


def experts(width: int, count: int) -> ModelFn:
    """Each token goes to one of several networks, through dense weights."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        x = features["x"] @ _kernel("in", features["x"].shape[-1], width)
        route = jax.nn.softmax(x @ _kernel("route", width, count))
        chosen, places = jax.lax.top_k(route, 2)
        weights = (jax.nn.one_hot(places, count) * chosen[..., None]).sum(-2)
        up, down = _kernel("up", count, width, 2 * width), _kernel("down", count, 2 * width, width)
        y = jnp.einsum("bef,efw->bew", jax.nn.gelu(jnp.einsum("bw,ewf->bef", x, up)), down)
        logits = jnp.einsum("bew,be->bw", y, weights) @ _kernel("out", width, 10)
        return _spec(mode, optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean())

    return model_fn


def dropped(width: int, layers: int) -> ModelFn:
    """Layers with dropout, and an optimizer that needs all gradients at once."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        hidden = features["x"]
        for layer in range(layers):
            hidden = jnp.tanh(hidden @ _kernel(f"l{layer}", hidden.shape[-1], width))
            kept = jax.random.bernoulli(ec.next_rng_key(f"drop{layer}"), 0.9, hidden.shape)
            hidden = jnp.where(kept, hidden / 0.9, 0)
        logits = hidden @ _kernel("out", width, 10)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return _spec(mode, loss, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)))

    return model_fn


def _vectors(width: int) -> dict[str, np.ndarray]:
    return {"x": np.zeros((8, width), np.float32)}


def _tokens(length: int) -> dict[str, np.ndarray]:
    return {"tokens": np.zeros((8, length), np.int32)}


def _images(size: int) -> dict[str, np.ndarray]:
    return {"image": np.zeros((8, size, size, 3), np.float32)}


_BF16: Mapping[str, Any] = MappingProxyType({"precision": "bfloat16"})
_FULL: Mapping[str, Any] = MappingProxyType({"remat": "full"})


def _one(
    model_fn: ModelFn,
    features: Mapping[str, np.ndarray],
    batch_size: int,
    split: str,
    *configs: Mapping[str, Any],
) -> Program:
    merged: dict[str, Any] = {}
    for config in configs:
        merged.update(config)
    return Program(
        model_fn=model_fn,
        features=features,
        labels=np.zeros(8, np.int32),
        batch_size=batch_size,
        split=split,
        config=merged,
    )


#: The programs by name. Programs that need at least 100 MiB on the devices count for the target of 1.5.
PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "mlp_data": _one(mlp(2048, 6), _vectors(1024), 16384, "data"),
        "mlp_zero1": _one(mlp(2048, 6), _vectors(1024), 16384, "zero1"),
        "mlp_fsdp": _one(mlp(2048, 6), _vectors(1024), 16384, "fsdp"),
        "mlp_bf16": _one(mlp(2048, 6), _vectors(1024), 65536, "data", _BF16),
        "mlp_bf16_gelu": _one(mlp(2048, 8, jax.nn.gelu), _vectors(1024), 65536, "fsdp", _BF16),
        "mlp_wide_fsdp": _one(mlp(8192, 4), _vectors(1024), 1024, "fsdp"),
        "mlp_wide_data": _one(mlp(8192, 4), _vectors(1024), 1024, "data"),
        "mlp_wide_sgd": _one(mlp(8192, 4, optimizer=optax.sgd(0.1)), _vectors(1024), 1024, "fsdp"),
        "mlp_adafactor": _one(mlp(4096, 4, optimizer=optax.adafactor(1e-3)), _vectors(1024), 8192, "data"),
        "mlp_micro": _one(mlp(2048, 6), _vectors(1024), 32768, "data", {"accumulate_steps": 4}),
        "lm_data": _one(transformer(512, 6), _tokens(256), 64, "data"),
        "lm_fsdp": _one(transformer(512, 6), _tokens(256), 64, "fsdp"),
        "lm_zero1": _one(transformer(512, 6), _tokens(256), 64, "zero1"),
        "lm_bf16": _one(transformer(512, 6), _tokens(256), 128, "data", _BF16),
        "lm_bf16_fsdp": _one(transformer(1024, 8), _tokens(256), 64, "fsdp", _BF16),
        "lm_bf16_full": _one(transformer(1024, 8), _tokens(256), 64, "fsdp", _BF16, _FULL),
        "lm_full": _one(transformer(512, 6), _tokens(256), 64, "fsdp", _FULL),
        "lm_dots": _one(transformer(512, 6), _tokens(256), 64, "data", {"remat": "dots"}),
        "lm_loop": _one(transformer(512, 4, scan=False), _tokens(256), 64, "data"),
        "lm_loop_fsdp": _one(transformer(512, 4, scan=False), _tokens(256), 64, "fsdp"),
        "lm_loop_bf16": _one(transformer(512, 4, scan=False), _tokens(256), 64, "fsdp", _BF16),
        "lm_long": _one(transformer(256, 4, 4), _tokens(1024), 16, "data"),
        "lm_long_bf16": _one(transformer(256, 4, 4), _tokens(1024), 16, "data", _BF16),
        "lm_deep_fsdp": _one(transformer(1024, 16), _tokens(128), 16, "fsdp"),
        "conv_data": _one(convnet(32, 3), _images(32), 2048, "data"),
        "conv_fsdp": _one(convnet(64, 3), _images(32), 1024, "fsdp"),
        "conv_bf16": _one(convnet(64, 3), _images(32), 2048, "data", _BF16),
        "conv_norm": _one(convnet(64, 3, batch_norm=True), _images(32), 1024, "data"),
        "conv_norm_bf16": _one(convnet(64, 3, batch_norm=True), _images(32), 2048, "data", _BF16),
        "conv_pool": _one(convnet(64, 3, pool=True), _images(32), 1024, "data"),
        "unet": _one(unet(32, 3), _images(64), 256, "data"),
        "unet_bf16": _one(unet(32, 3), _images(64), 512, "data", _BF16),
        "gru": _one(recurrent(512), {"x": np.zeros((8, 64, 128), np.float32)}, 2048, "data"),
        "gru_bf16": _one(recurrent(512), {"x": np.zeros((8, 64, 128), np.float32)}, 4096, "data", _BF16),
        "table": _one(table(1_000_000, 32), {"ids": np.zeros((8, 64), np.int32)}, 8192, "data"),
        "table_fsdp": _one(table(1_000_000, 32), {"ids": np.zeros((8, 64), np.int32)}, 8192, "fsdp"),
        "towers": _one(two_towers(1024, 3), _vectors(512), 16384, "data"),
        "towers_bf16": _one(two_towers(1024, 3), _vectors(512), 16384, "fsdp", _BF16),
        "experts": _one(experts(1024, 8), _vectors(512), 8192, "fsdp"),
        "experts_bf16": _one(experts(1024, 8), _vectors(512), 8192, "data", _BF16),
        "dropout": _one(dropped(2048, 4), _vectors(1024), 16384, "data"),
        "dropout_bf16": _one(dropped(2048, 4), _vectors(1024), 32768, "fsdp", _BF16),
    }
)
