"""The features of a model_fn: their names, and what they must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from estimator_canned_bert.config import BertConfig
from estimator_core.errors import ModelFnError

INPUT_IDS, INPUT_MASK, SEGMENT_IDS = "input_ids", "input_mask", "segment_ids"


def check_features(features: Any, config: BertConfig) -> tuple[Any, Any, Any]:
    """`input_ids`, `input_mask` and `segment_ids` of a batch; the last two may be left out (all tokens, one segment).

    Raises:
        ModelFnError: features that cannot be encoded, or longer ones than the encoder has positions for.
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
            "Set max_seq_length to that at most."
        )
    return ids, mask, segments
