"""Names and shapes of the variables of the encoder: those of google-research/bert and google-research/albert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from estimator_canned_bert.config import BertConfig

#: The arrays of the encoder by name.
Parameters: TypeAlias = Mapping[str, Any]

ROOT = "bert"


def layer_prefix(config: BertConfig, layer: int) -> str:
    """Returns the prefix of the variables of a layer. The layers of an ALBERT group have the same prefix.

    Example:
        >>> layer_prefix(BertConfig(), 3)
        'bert/encoder/layer_3'
    """
    if not config.is_albert:
        return f"{ROOT}/encoder/layer_{layer}"
    group = layer * config.num_hidden_groups // config.num_hidden_layers
    return f"{ROOT}/encoder/transformer/group_{group}/inner_group_0"


def layer_parts(config: BertConfig) -> dict[str, str]:
    """Returns the parts of a layer: the name in the computation, and the name in a checkpoint."""
    if config.is_albert:
        return {
            "query": "attention_1/self/query",
            "key": "attention_1/self/key",
            "value": "attention_1/self/value",
            "attention_output": "attention_1/output/dense",
            "attention_norm": "LayerNorm",
            "intermediate": "ffn_1/intermediate/dense",
            "output": "ffn_1/intermediate/output/dense",
            "output_norm": "LayerNorm_1",
        }
    return {
        "query": "attention/self/query",
        "key": "attention/self/key",
        "value": "attention/self/value",
        "attention_output": "attention/output/dense",
        "attention_norm": "attention/output/LayerNorm",
        "intermediate": "intermediate/dense",
        "output": "output/dense",
        "output_norm": "output/LayerNorm",
    }


def encoder_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every variable of the encoder by name, in the order of the computation.

    Example:
        >>> encoder_shapes(BertConfig.of_size("tiny"))["bert/pooler/dense/kernel"]
        (128, 128)
    """
    width, hidden = config.embedding_width, config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {
        f"{ROOT}/embeddings/word_embeddings": (config.vocab_size, width),
        f"{ROOT}/embeddings/token_type_embeddings": (config.type_vocab_size, width),
        f"{ROOT}/embeddings/position_embeddings": (config.max_position_embeddings, width),
        **_norm(f"{ROOT}/embeddings/LayerNorm", width),
    }
    if config.is_albert:
        shapes |= _dense(f"{ROOT}/encoder/embedding_hidden_mapping_in", width, hidden)
    for layer in range(config.num_hidden_layers):
        shapes |= _layer(config, layer_prefix(config, layer))
    return shapes | _dense(f"{ROOT}/pooler/dense", hidden, hidden)


def _layer(config: BertConfig, prefix: str) -> dict[str, tuple[int, ...]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {}
    for part, name in layer_parts(config).items():
        path = f"{prefix}/{name}"
        if part.endswith("_norm"):
            shapes |= _norm(path, hidden)
        else:
            sizes = {"intermediate": (hidden, inner), "output": (inner, hidden)}.get(part, (hidden, hidden))
            shapes |= _dense(path, *sizes)
    return shapes


def _dense(path: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/kernel": (inputs, outputs), f"{path}/bias": (outputs,)}


def _norm(path: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/beta": (size,), f"{path}/gamma": (size,)}
