"""The encoder for a user's own model_fn, with the interface of google-research/bert."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.apply import EncoderOptions, encode
from estimator_canned_bert.encoder.parameters import ROOT
from estimator_canned_bert.encoder.variables import declare_encoder
from estimator_core.errors import ArgumentError


class BertModel:
    """The encoder of BERT or ALBERT, with its variables, in the scope of a model_fn.

    Variables have the names and initialisers of the original, so `init_from_pretrained` can load them. The object
    belongs to one trace: create it in model_fn, and do not keep it.

    Args:
        config: the shape of the encoder.
        is_training: whether to apply dropout: `mode == ec.ModeKeys.TRAIN`.
        input_ids: int [batch, length], token ids.
        input_mask: int [batch, length], 1 for tokens and 0 for padding. None: all are tokens.
        token_type_ids: int [batch, length], 0 for the first text and 1 for the second. None: all 0.
        options: the settings of the computation. None: float32, layer by layer.

    Attributes:
        sequence_output: [batch, length, hidden], the output for every token.
        pooled_output: [batch, hidden], the pooled output of the first token of each example.
        all_encoder_layers: the output of each layer, [batch, length, hidden]; the last one is `sequence_output`.
        embedding_table: [vocab_size, width], the word embeddings, for output weights that share them.

    Raises:
        ArgumentError: ids, mask or types do not have the shape [batch, length], or there are too many tokens.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     bert = BertModel(BertConfig.of_size("tiny", vocab_size=10), mode == "train", features["input_ids"])
        ...     return ec.EstimatorSpec(mode, predictions=bert.pooled_output)

    Source: `modeling.BertModel` of google-research/bert.
    """

    def __init__(
        self,
        config: BertConfig,
        is_training: bool,
        input_ids: Any,
        input_mask: Any = None,
        token_type_ids: Any = None,
        *,
        options: EncoderOptions | None = None,
    ) -> None:
        ids = _ids("input_ids", input_ids, None)
        if ids.shape[1] > config.max_position_embeddings:
            raise ArgumentError(
                f"input_ids have {ids.shape[1]} tokens a row; this encoder has {config.max_position_embeddings} "
                "positions."
            )
        mask = jnp.ones_like(ids) if input_mask is None else _ids("input_mask", input_mask, ids.shape)
        types = jnp.zeros_like(ids) if token_type_ids is None else _ids("token_type_ids", token_type_ids, ids.shape)
        parameters = declare_encoder(config)
        key = ec.next_rng_key("dropout") if is_training else None
        encoded = encode(parameters, config, ids, mask, types, key=key, options=options, all_layers=True)
        self.sequence_output: jax.Array = encoded.sequence
        self.pooled_output: jax.Array = encoded.pooled
        self.all_encoder_layers: tuple[jax.Array, ...] = encoded.layers
        self.embedding_table: jax.Array = parameters[f"{ROOT}/embeddings/word_embeddings"]

    def get_sequence_output(self) -> jax.Array:
        """Returns `sequence_output`."""
        return self.sequence_output

    def get_pooled_output(self) -> jax.Array:
        """Returns `pooled_output`."""
        return self.pooled_output

    def get_all_encoder_layers(self) -> tuple[jax.Array, ...]:
        """Returns `all_encoder_layers`."""
        return self.all_encoder_layers

    def get_embedding_table(self) -> jax.Array:
        """Returns `embedding_table`."""
        return self.embedding_table


def _ids(name: str, given: Any, shape: tuple[int, ...] | None) -> jax.Array:
    array = jnp.asarray(given)
    if array.ndim != 2 or not jnp.issubdtype(array.dtype, jnp.integer) or shape not in (None, array.shape):
        wanted = "[batch, length]" if shape is None else f"{list(shape)}, as input_ids"
        raise ArgumentError(f"{name} must be whole numbers of shape {wanted}; given {array.dtype}{list(array.shape)}.")
    return array
