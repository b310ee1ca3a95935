"""The names of google-research and of transformers for the same array."""

from __future__ import annotations

from typing import NamedTuple

from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.parameters import ROOT, encoder_shapes, layer_parts, layer_prefix
from estimator_canned_bert.encoder.variables import OUTPUT_BIAS, OUTPUT_WEIGHTS


class ForeignName(NamedTuple):
    """The name and the form of an array in transformers.

    Attributes:
        name: the name in transformers.
        transposed: whether its two axes are exchanged.
    """

    name: str
    transposed: bool


_BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
_ALBERT_LAYER = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "attention_output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "intermediate": "ffn",
    "output": "ffn_output",
    "output_norm": "full_layer_layer_norm",
}


def hugging_face_names(config: BertConfig) -> dict[str, ForeignName]:
    """Returns the name and form in transformers of every variable of encoder and output layer.

    Example:
        >>> hugging_face_names(BertConfig())["bert/encoder/layer_0/intermediate/dense/kernel"]
        ForeignName(name='bert.encoder.layer.0.intermediate.dense.weight', transposed=True)
    """
    root = config.architecture
    modules = {
        f"{ROOT}/embeddings/LayerNorm": f"{root}.embeddings.LayerNorm",
        f"{ROOT}/pooler/dense": f"{root}.pooler" if config.is_albert else f"{root}.pooler.dense",
        f"{ROOT}/encoder/embedding_hidden_mapping_in": f"{root}.encoder.embedding_hidden_mapping_in",
    }
    for layer in range(config.num_hidden_layers):
        prefix = layer_prefix(config, layer)
        for part, name in layer_parts(config).items():
            modules[f"{prefix}/{name}"] = _layer_module(config, layer, part)
    named: dict[str, ForeignName] = {}
    for path in encoder_shapes(config):
        module, _, last = path.rpartition("/")
        if last.endswith("_embeddings"):
            named[path] = ForeignName(f"{root}.embeddings.{last}.weight", False)
        else:
            kind = "bias" if last in ("bias", "beta") else "weight"
            named[path] = ForeignName(f"{modules[module]}.{kind}", last == "kernel")
    named[OUTPUT_WEIGHTS] = ForeignName("classifier.weight", False)
    named[OUTPUT_BIAS] = ForeignName("classifier.bias", False)
    return named


def _layer_module(config: BertConfig, layer: int, part: str) -> str:
    if config.is_albert:
        group = layer * config.num_hidden_groups // config.num_hidden_layers
        return f"albert.encoder.albert_layer_groups.{group}.albert_layers.0.{_ALBERT_LAYER[part]}"
    return f"bert.encoder.layer.{layer}.{_BERT_LAYER[part]}"
