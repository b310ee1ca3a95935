"""The computation of the encoder: embeddings, transformer layers, pooler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.attention import Implementation, attend
from estimator_canned_bert.encoder.layers import activation, dense, dropout, layer_norm
from estimator_canned_bert.encoder.packed import places_in_sentence, same_sentence
from estimator_canned_bert.encoder.parameters import ROOT, Parameters, layer_parts, layer_prefix


class Encoded(NamedTuple):
    """The outputs of an encoder.

    Attributes:
        sequence: [batch, length, hidden], the output for every token.
        pooled: [batch, hidden], the pooled output of the first token of each example.
        layers: the output of each layer, [batch, length, hidden], if requested.
    """

    sequence: jax.Array
    pooled: jax.Array
    layers: tuple[jax.Array, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """The settings of the computation. They do not change the result except for rounding.

    Args:
        dtype: the dtype of the computation. Parameters, layer normalisation and softmax stay in float32.
        remat: whether to compute the layers again in the backward pass instead of keeping their activations.
        scan_layers: whether to compile one layer in a `lax.scan`. It compiles faster, but copies the stacked weights
            every step.
        attention: the implementation of the fused attention.
    """

    dtype: Any = jnp.float32
    remat: bool = False
    scan_layers: bool = False
    attention: Implementation = "xla"


def encode(
    parameters: Parameters,
    config: BertConfig,
    input_ids: jax.Array,
    input_mask: jax.Array,
    segment_ids: jax.Array,
    *,
    first_tokens: jax.Array | None = None,
    key: jax.Array | None = None,
    options: EncoderOptions | None = None,
    all_layers: bool = False,
) -> Encoded:
    """Encodes a batch. A row is one example, or holds several (`first_tokens`) that do not attend to each other.

    Args:
        parameters: the arrays of `encoder_shapes(config)` by name.
        config: the shape of the encoder.
        input_ids: int [batch, length], the ids of the tokens. A row with an id or a segment out of range is NaN.
        input_mask: int [batch, length], 1 for a token and 0 for padding. In packed rows: the number of its sentence,
            from 1.
        segment_ids: int [batch, length], 0 for the first text and 1 for the second.
        first_tokens: int [examples], the start of each example in packed rows, counted over all rows; None: not packed.
        key: the random key of dropout; None: no dropout. Each place of a row draws its own values.
        options: the settings of the computation.
        all_layers: whether to return the output of each layer.

    Example:
        >>> config = BertConfig.of_size("tiny", vocab_size=10)
        >>> from estimator_canned_bert.encoder.parameters import encoder_shapes
        >>> parameters = {name: jnp.zeros(shape) for name, shape in encoder_shapes(config).items()}
        >>> ids = jnp.ones((2, 5), jnp.int32)
        >>> encode(parameters, config, ids, ids, ids * 0).pooled.shape
        (2, 128)

    Source: `modeling.BertModel` of google-research/bert; `modeling.AlbertModel` of google-research/albert.
    """
    options = options or EncoderOptions()
    keys = _Keys(key)
    packed = first_tokens is not None
    positions = places_in_sentence(input_mask) if packed else None
    ids = _checked(input_ids, segment_ids, input_mask, config)
    hidden = _embed(parameters, config, ids, segment_ids, positions, keys.of(0)).astype(options.dtype)
    # Otherwise the look-up would be split along the columns of the table, and with it the activations of every layer.
    hidden = ec.with_logical_constraint(hidden, ("batch", "length", "embed"))
    if config.is_albert:
        hidden = dense(parameters, f"{ROOT}/encoder/embedding_hidden_mapping_in", hidden)
    mask = same_sentence(input_mask) if packed else (input_mask > 0)[:, None, None, :]
    layer_keys = keys.layers(config.num_hidden_layers)

    def layer(weights: Parameters, hidden: jax.Array, layer_key: jax.Array | None) -> jax.Array:
        return _layer(ec.gathered(weights), config, options, hidden, mask, layer_key)

    if options.remat:
        layer = jax.checkpoint(layer)
    weights = [_of_layer(parameters, layer_prefix(config, index)) for index in range(config.num_hidden_layers)]
    outputs: list[jax.Array] = []
    if options.scan_layers:
        stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *weights)

        def next_layer(before: jax.Array, own: tuple[Parameters, jax.Array | None]) -> tuple[jax.Array, Any]:
            after = layer(own[0], before, own[1])
            return after, after if all_layers else None

        hidden, kept = jax.lax.scan(next_layer, hidden, (stacked, layer_keys))
        outputs = list(kept) if all_layers else []
    else:
        for index, own in enumerate(weights):
            hidden = layer(own, hidden, None if layer_keys is None else layer_keys[index])
            outputs.append(hidden)
    first = (
        hidden[:, 0] if first_tokens is None else jnp.take(hidden.reshape(-1, hidden.shape[-1]), first_tokens, axis=0)
    )
    pooled = jnp.tanh(dense(parameters, f"{ROOT}/pooler/dense", first))
    return Encoded(hidden, pooled, tuple(outputs) if all_layers else ())


class _Keys:
    """Random keys by purpose. Each one is None if there is no dropout."""

    def __init__(self, key: jax.Array | None) -> None:
        self._key = key

    def of(self, purpose: int) -> jax.Array | None:
        return None if self._key is None else jax.random.fold_in(self._key, purpose)

    def layers(self, count: int) -> jax.Array | None:
        key = self.of(1)
        return None if key is None else jax.random.split(key, count)


def _checked(ids: jax.Array, segments: jax.Array, mask: jax.Array, config: BertConfig) -> jax.Array:
    """Returns the ids, with an id whose row is NaN for each token with an unknown id or segment.

    It is the number after the last id. jax would count a negative id from the end. Padding may have any id.
    """
    known = (ids >= 0) & (ids < config.vocab_size) & (segments >= 0) & (segments < config.type_vocab_size)
    return jnp.where(known, ids, jnp.where(mask > 0, config.vocab_size, 0))


def _embed(
    parameters: Parameters,
    config: BertConfig,
    input_ids: jax.Array,
    segment_ids: jax.Array,
    positions: jax.Array | None,
    key: jax.Array | None,
) -> jax.Array:
    path = f"{ROOT}/embeddings"
    words = jnp.take(parameters[f"{path}/word_embeddings"], input_ids, axis=0)
    segments = parameters[f"{path}/token_type_embeddings"]
    # A one-hot product, as in google-research/bert, makes the gradient of such a small table cheap.
    kinds = jax.nn.one_hot(segment_ids, segments.shape[0], dtype=segments.dtype) @ segments
    table = parameters[f"{path}/position_embeddings"]
    places = table[: input_ids.shape[1]] if positions is None else jnp.take(table, positions, axis=0)
    summed = words + places + kinds
    return dropout(
        layer_norm(parameters, f"{path}/LayerNorm", summed, config.layer_norm_eps), config.hidden_dropout_prob, key
    )


def _of_layer(parameters: Parameters, prefix: str) -> dict[str, Any]:
    start = f"{prefix}/"
    return {name.removeprefix(start): array for name, array in parameters.items() if name.startswith(start)}


def _layer(
    weights: Parameters,
    config: BertConfig,
    options: EncoderOptions,
    hidden: jax.Array,
    mask: jax.Array,
    key: jax.Array | None,
) -> jax.Array:
    parts = layer_parts(config)
    keys = _Keys(key)
    batch, length, size = hidden.shape
    heads = config.num_attention_heads

    def by_head(part: str) -> jax.Array:
        return dense(weights, parts[part], hidden).reshape(batch, length, heads, size // heads)

    context = attend(
        by_head("query"),
        by_head("key"),
        by_head("value"),
        mask,
        dropout_rate=config.attention_probs_dropout_prob,
        dropout_key=keys.of(0),
        implementation=options.attention,
    ).reshape(batch, length, size)
    attended = dropout(dense(weights, parts["attention_output"], context), config.hidden_dropout_prob, keys.of(1))
    hidden = layer_norm(weights, parts["attention_norm"], hidden + attended, config.layer_norm_eps)
    inner = activation(config.hidden_act)(dense(weights, parts["intermediate"], hidden))
    outer = dropout(dense(weights, parts["output"], inner), config.hidden_dropout_prob, keys.of(2))
    return layer_norm(weights, parts["output_norm"], hidden + outer, config.layer_norm_eps)
