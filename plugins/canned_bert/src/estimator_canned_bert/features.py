"""The features of a model_fn: their names and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp

from estimator_canned_bert.config import BertConfig
from estimator_core.errors import ModelFnError

INPUT_IDS, INPUT_MASK, SEGMENT_IDS = "input_ids", "input_mask", "segment_ids"
#: In packed batches: the position of the first token of each example, counted over all rows.
FIRST_TOKENS = "first_tokens"
#: The number of pieces of a packed row. With pieces, every feature has the examples as its leading axis.
PIECES = 32


class Sentences(NamedTuple):
    """The features of a batch in the form that the encoder reads.

    Attributes:
        ids: int [rows, length], the ids of the tokens.
        mask: int [rows, length], 1 for a token and 0 for padding. In packed rows: the number of the token's sentence.
        segments: int [rows, length], the segment of each token.
        first_tokens: int [batch], the position of the first token of each example, over all rows; None: a row is an
            example.
    """

    ids: Any
    mask: Any
    segments: Any
    first_tokens: Any


def read_features(features: Any, config: BertConfig, micro_batches: int = 1) -> Sentences:
    """Returns the features of a batch, packed or not.

    Args:
        features: the features that the model_fn receives.
        config: the shape of the encoder.
        micro_batches: the number of parts into which the batch is divided.

    Raises:
        ModelFnError: the features cannot be encoded.
    """
    if not isinstance(features, Mapping) or FIRST_TOKENS not in features:
        return Sentences(*check_features(features, config), None)
    given: Mapping[str, Any] = features
    arrays: list[Any] = [given.get(name) for name in (INPUT_IDS, INPUT_MASK, SEGMENT_IDS)]
    ids, mask, segments = arrays
    if any(array is None or array.ndim != 3 or array.shape != ids.shape for array in arrays):
        raise ModelFnError(
            f"{FIRST_TOKENS} is for packed batches, whose {INPUT_IDS}, {INPUT_MASK} and {SEGMENT_IDS} are int [batch, "
            "depth, width]: `Split.input_fn(..., pack=True)` makes them."
        )
    if micro_batches > 1:
        raise ModelFnError(
            "A packed batch cannot be cut into micro-batches: its rows hold sentences of several micro-batches. "
            f"Leave out pack, or accumulate_steps={micro_batches}."
        )
    if PIECES * (ids.shape[2] - 1) + 1 > config.max_position_embeddings:
        raise ModelFnError(
            f"Cannot use sentences of more than {PIECES * (ids.shape[2] - 1)} tokens: the encoder has "
            f"{config.max_position_embeddings} positions. Set max_seq_length to at most this number."
        )
    return Sentences(_rows(ids), _rows(mask), _rows(segments), given[FIRST_TOKENS])


def _rows(array: Any) -> Any:
    """Returns [batch, depth, width] as [rows, length], without the pieces at the end that fill no row."""
    batch, depth, width = array.shape
    rows = batch * depth // PIECES
    return array.reshape(batch * depth, width)[: rows * PIECES].reshape(rows, PIECES * width)


def check_features(features: Any, config: BertConfig) -> tuple[Any, Any, Any]:
    """Returns `input_ids`, `input_mask` and `segment_ids` of a batch. The last two are optional.

    Without them, all ids are tokens of one segment.

    Raises:
        ModelFnError: the features cannot be encoded, or are longer than the number of positions of the encoder.
    """
    if not isinstance(features, Mapping) or INPUT_IDS not in features:
        given = sorted(features) if isinstance(features, Mapping) else type(features).__name__
        raise ModelFnError(
            f"The features of BERT are {INPUT_IDS}, {INPUT_MASK} and {SEGMENT_IDS}, given: {given}. Text becomes "
            "features with ClassifierData, or with the host transform BertTokens."
        )
    ids = features[INPUT_IDS]
    mask = features.get(INPUT_MASK, jnp.ones_like(ids))
    segments = features.get(SEGMENT_IDS, jnp.zeros_like(ids))
    for name, array in ((INPUT_IDS, ids), (INPUT_MASK, mask), (SEGMENT_IDS, segments)):
        if array.ndim != 2 or array.shape != ids.shape or not jnp.issubdtype(array.dtype, jnp.integer):
            raise ModelFnError(
                f"{name} should be int [batch, length] like {INPUT_IDS}, given: {array.dtype}{list(array.shape)}."
            )
    if ids.shape[1] > config.max_position_embeddings:
        raise ModelFnError(
            f"Cannot use sequence length {ids.shape[1]}: the encoder has {config.max_position_embeddings} positions. "
            "Set max_seq_length to at most this number."
        )
    return ids, mask, segments
