"""Which variables decay, how fast each layer learns, and which do not learn at all: all by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from estimator_canned_bert.config import BertConfig
from estimator_core.errors import ArgumentError

_NO_DECAY = re.compile("LayerNorm|layer_norm|bias")
_LAYER = re.compile(r".*/encoder/(?:layer_(\d+)|transformer/group_(\d+))/.*")


def decays(name: str) -> bool:
    """Whether weight decay applies to a variable: not to layer normalisation, not to biases.

    Example:
        >>> decays("bert/pooler/dense/kernel"), decays("bert/embeddings/LayerNorm/gamma"), decays("output_bias")
        (True, False, False)

    Source: `exclude_from_weight_decay` in `optimization.create_optimizer` of google-research/bert.
    """
    return _NO_DECAY.search(name) is None


def layer_scales(names: Iterable[str], config: BertConfig, decay: float) -> dict[str, float]:
    """The factor on each variable's learning rate: 1 at the output, times `decay` for each layer below.

    Example:
        >>> layer_scales(["output_bias", "bert/encoder/layer_1/output/dense/bias"], BertConfig.of_size("tiny"), 0.5)
        {'output_bias': 1.0, 'bert/encoder/layer_1/output/dense/bias': 0.5}

    Source: Howard and Ruder, Universal Language Model Fine-tuning (2018); `layerwise_lr_decay` of
    google-research/electra.
    """
    top = config.num_hidden_layers + 1
    return {name: decay ** (top - _depth(name, config)) for name in names}


def trainable_pattern(config: BertConfig, frozen: str | None, frozen_layers: int) -> str:
    """The regular expression of the variables that learn, for `ec.minimize`.

    Args:
        config: the shape of the encoder.
        frozen: a regular expression of names that do not learn.
        frozen_layers: that many layers, counted from the embeddings, do not learn, and the embeddings with them; -1:
            neither.

    Raises:
        ArgumentError: a pattern that is none, or more layers than there are.

    Example:
        >>> import re
        >>> pattern = trainable_pattern(BertConfig(), None, 1)
        >>> [bool(re.fullmatch(pattern, f"bert/encoder/layer_{n}/output/dense/bias")) for n in (0, 1, 10)]
        [False, True, True]
    """
    if not -1 <= frozen_layers <= config.num_hidden_layers:
        raise ArgumentError(f"frozen_layers is {frozen_layers}; the encoder has {config.num_hidden_layers} layers.")
    if config.is_albert and 0 < frozen_layers < config.num_hidden_layers:
        raise ArgumentError("frozen_layers: layers of ALBERT share their weights; freeze all of them or none.")
    parts: list[str] = []
    if frozen is not None:
        try:
            re.compile(frozen)
        except re.error as error:
            raise ArgumentError(f"frozen is not a regular expression: {frozen!r} ({error}).") from error
        parts.append(f"(?:{frozen})")
    if frozen_layers >= 0:
        parts.append(r".*/embeddings/.*|.*/embedding_hidden_mapping_in/.*")
    if config.is_albert and frozen_layers > 0:
        parts.append(r".*/encoder/transformer/.*")
    elif frozen_layers > 0:
        parts.append(rf".*/encoder/layer_(?:{'|'.join(map(str, range(frozen_layers)))})/.*")
    return f"(?!(?:{'|'.join(parts)})$).*" if parts else ".*"


def _depth(name: str, config: BertConfig) -> int:
    if "/embeddings/" in name or "/embedding_hidden_mapping_in/" in name:
        return 0
    found = _LAYER.fullmatch(name)
    if found is None:
        return config.num_hidden_layers + 1
    layer, group = found.groups()
    if layer is not None:
        return int(layer) + 1
    return (int(group) + 1) * config.num_hidden_layers // config.num_hidden_groups
