"""The variables with weight decay, the learning rates of layers, and the frozen variables, all by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from estimator_canned_bert.config import BertConfig
from estimator_core.errors import ArgumentError

_NO_DECAY = re.compile("LayerNorm|layer_norm|bias")
_LAYER = re.compile(r".*/encoder/(?:layer_(\d+)|transformer/group_(\d+))/.*")


def decays(name: str) -> bool:
    """Returns whether weight decay applies to a variable. It excludes layer normalisation and biases.

    Example:
        >>> decays("bert/pooler/dense/kernel"), decays("bert/embeddings/LayerNorm/gamma"), decays("output_bias")
        (True, False, False)

    Source: `exclude_from_weight_decay` in `optimization.create_optimizer` of google-research/bert.
    """
    return _NO_DECAY.search(name) is None


def layer_scales(names: Iterable[str], config: BertConfig, decay: float) -> dict[str, float]:
    """Returns the factor on the learning rate of each variable: 1 at the output, times `decay` for each layer below.

    Example:
        >>> layer_scales(["output_bias", "bert/encoder/layer_1/output/dense/bias"], BertConfig.of_size("tiny"), 0.5)
        {'output_bias': 1.0, 'bert/encoder/layer_1/output/dense/bias': 0.5}

    Source: Howard and Ruder, Universal Language Model Fine-tuning (2018); `layerwise_lr_decay` of
    google-research/electra.
    """
    top = config.num_hidden_layers + 1
    return {name: decay ** (top - _depth(name, config)) for name in names}


def trainable_pattern(config: BertConfig, frozen: str | None, frozen_layers: int) -> str:
    """Returns the regular expression of the variables that are trained, for `ec.minimize`.

    Args:
        config: the shape of the encoder.
        frozen: a regular expression of the names of variables that are not trained.
        frozen_layers: the number of layers, from the embeddings up, that are not trained. 0: only the embeddings; -1:
            all are trained.

    Raises:
        ArgumentError: the pattern is not a regular expression, or frozen_layers is impossible for this encoder.

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
