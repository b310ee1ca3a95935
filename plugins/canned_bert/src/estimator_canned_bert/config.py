"""The shape of a BERT or ALBERT encoder, and its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from estimator_core.errors import ArgumentError, is_integer

ARCHITECTURES = ("bert", "albert")
CONFIG_FILES = ("config.json", "bert_config.json", "albert_config.json")
ACTIVATIONS = ("gelu", "gelu_new", "relu", "tanh", "linear")

# Hidden size, layers and heads of the sizes that google-research published.
SIZES = {
    "tiny": (128, 2, 2),
    "mini": (256, 4, 4),
    "small": (512, 4, 8),
    "medium": (512, 8, 8),
    "base": (768, 12, 12),
    "large": (1024, 24, 16),
}
# Names of the same field in other files. None: the field is ignored.
_ALIASES = {
    "classifier_dropout_prob": "classifier_dropout",
    "num_hidden_group": "num_hidden_groups",
    "net_structure_type": None,
    "layernorm_eps": "layer_norm_eps",
}


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The shape of an encoder. Defaults are those of BERT-base, uncased.

    Args:
        architecture: "bert", or "albert" (factorised embeddings, layers that share their weights).
        vocab_size: the number of tokens of the vocabulary.
        hidden_size: the size of the hidden states.
        num_hidden_layers: the number of transformer layers.
        num_attention_heads: the number of heads of each layer. It divides `hidden_size`.
        intermediate_size: the hidden size of the feed-forward part.
        hidden_act: "gelu" (exact), "gelu_new" (tanh), "relu", "tanh" or "linear".
        hidden_dropout_prob: the dropout rate of embeddings and of the output of each part.
        attention_probs_dropout_prob: the dropout rate of attention probabilities. With 0, training uses the fused
            attention.
        classifier_dropout: the dropout rate before the output layer. None: `hidden_dropout_prob` (ALBERT: 0.1).
        max_position_embeddings: the largest sequence length.
        type_vocab_size: the number of segment types.
        initializer_range: the standard deviation of the truncated normal initialiser.
        layer_norm_eps: epsilon of layer normalisation.
        embedding_size: the size of the embeddings for ALBERT; None for BERT.
        num_hidden_groups: for ALBERT, the number of groups of layers that share weights.

    Raises:
        ArgumentError: the sizes do not fit each other.

    Example:
        >>> BertConfig.of_size("tiny", vocab_size=1000).num_hidden_layers
        2

    Source: `modeling.BertConfig` of google-research/bert and google-research/albert.
    """

    architecture: Literal["bert", "albert"] = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    embedding_size: int | None = None
    num_hidden_groups: int = 1

    def __post_init__(self) -> None:
        _check(self)

    @property
    def is_albert(self) -> bool:
        """Whether layers share their weights."""
        return self.architecture == "albert"

    @property
    def embedding_width(self) -> int:
        """The size of the embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def output_dropout(self) -> float:
        """The dropout rate before the output layer."""
        if self.classifier_dropout is not None:
            return self.classifier_dropout
        return 0.1 if self.is_albert else self.hidden_dropout_prob

    def replace(self, **changes: Any) -> BertConfig:
        """Returns a checked copy with some fields changed."""
        return replace(self, **changes)

    def without_dropout(self) -> BertConfig:
        """Returns a copy without dropout."""
        return self.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.0)

    @classmethod
    def of_size(cls, size: str, **changes: Any) -> BertConfig:
        """Returns one of the published sizes: tiny, mini, small, medium, base, large.

        Raises:
            ArgumentError: the size is unknown.
        """
        if size not in SIZES:
            raise ArgumentError(f"There is no BERT of size {size!r}. Sizes: {', '.join(SIZES)}.")
        hidden, layers, heads = SIZES[size]
        shape: dict[str, Any] = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
        values: dict[str, Any] = {**shape, "intermediate_size": 4 * hidden, **changes}
        return cls(**values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the configuration") -> BertConfig:
        """Creates a configuration from the keys of a config.json. Keys that do not affect the encoder are ignored.

        Raises:
            ArgumentError: the model is of another kind, or has relative positions.
        """
        kind = values.get("model_type")
        if kind is None:
            kind = "albert" if "embedding_size" in values or "num_hidden_groups" in values else "bert"
        if kind not in ("bert", "albert"):
            raise ArgumentError(f"{where} describes a model of type {kind!r}; only bert and albert can be read.")
        if values.get("position_embedding_type", "absolute") != "absolute":
            raise ArgumentError(
                f"{where} has position_embedding_type {values['position_embedding_type']!r}; only 'absolute' can be "
                "read."
            )
        known = {field.name for field in fields(cls)}
        renamed = {_ALIASES.get(key, key): value for key, value in values.items()}
        chosen: dict[str, Any] = {key: value for key, value in renamed.items() if key in known}
        chosen["architecture"] = kind
        if kind == "albert":
            chosen = {"hidden_act": "gelu_new", "embedding_size": 128, **chosen}
            if values.get("inner_group_num", 1) != 1:
                raise ArgumentError(f"{where} has inner_group_num {values['inner_group_num']}; only 1 can be read.")
        else:
            chosen.pop("embedding_size", None)
        chosen["hidden_act"] = {"gelu_fast": "gelu_new", "gelu_pytorch_tanh": "gelu_new"}.get(
            chosen.get("hidden_act", "gelu"), chosen.get("hidden_act", "gelu")
        )
        return cls(**chosen)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> BertConfig:
        """Reads a config.json or bert_config.json.

        Raises:
            ArgumentError: the file does not exist or is not JSON, or the model is of another kind.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ArgumentError(f"There is no model configuration {os.fspath(path)}.") from error
        except (OSError, ValueError) as error:
            raise ArgumentError(f"The model configuration {os.fspath(path)} cannot be read: {error}.") from error
        if not isinstance(values, dict):
            raise ArgumentError(f"The model configuration {os.fspath(path)} is not a JSON object.")
        return cls.from_dict(values, where=os.fspath(path))

    @classmethod
    def from_pretrained(cls, directory: str | os.PathLike[str]) -> BertConfig:
        """Reads the configuration next to pretrained weights.

        Args:
            directory: the directory of the weights, or a checkpoint in it, such as `uncased/bert_model.ckpt`.

        Raises:
            ArgumentError: there is no file with one of the expected names.
        """
        place = Path(directory)
        place = place if place.is_dir() else place.parent
        for name in CONFIG_FILES:
            if (place / name).is_file():
                return cls.from_json_file(place / name)
        raise ArgumentError(f"There is no model configuration in {place}: none of {', '.join(CONFIG_FILES)}.")

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys of a config.json in the form of transformers."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values["model_type"] = values.pop("architecture")
        dropout = values.pop("classifier_dropout")
        if self.is_albert:
            values |= {"inner_group_num": 1, "classifier_dropout_prob": self.output_dropout}
        else:
            del values["embedding_size"], values["num_hidden_groups"]
            values["classifier_dropout"] = dropout
        return values


def _check(config: BertConfig) -> None:
    if config.architecture not in ARCHITECTURES:
        raise ArgumentError(f'architecture should be "bert" or "albert", given: {config.architecture!r}.')
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    for name in (*names, "max_position_embeddings", "type_vocab_size", "num_hidden_groups"):
        value = getattr(config, name)
        if not is_integer(value) or value < 1:
            raise ArgumentError(f"{name} should be a positive int, given: {value!r}.")
    if config.hidden_size % config.num_attention_heads:
        raise ArgumentError(
            f"The hidden size ({config.hidden_size}) is not a multiple of the number of attention heads "
            f"({config.num_attention_heads})."
        )
    if config.hidden_act not in ACTIVATIONS:
        raise ArgumentError(f"hidden_act should be one of {', '.join(ACTIVATIONS)}, given: {config.hidden_act!r}.")
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "output_dropout"):
        if not 0 <= getattr(config, name) < 1:
            raise ArgumentError(f"{name} should lie in [0, 1), given: {getattr(config, name)!r}.")
    if not config.is_albert and config.embedding_size not in (None, config.hidden_size):
        raise ArgumentError('embedding_size is for architecture="albert"; embeddings of BERT have the hidden size.')
    if config.num_hidden_layers % config.num_hidden_groups:
        raise ArgumentError(
            f"{config.num_hidden_layers} layers cannot be split into {config.num_hidden_groups} equal groups."
        )
