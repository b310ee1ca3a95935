"""LoRA: low-rank additions to chosen kernels, which are trained instead of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.parameters import encoder_shapes, layer_parts, layer_prefix
from estimator_canned_bert.optimization.averaging import has_averages, with_averages
from estimator_core.errors import ArgumentError, check_count

_PARTS = ("query", "key", "value", "attention_output", "intermediate", "output")
#: The variables that are trained: the additions, the pooler and the output layer.
TRAINABLE = r".*/lora_[ab]|bert/pooler/.*|output_.*"


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """The kernels with additions, and the rank of the additions.

    Args:
        rank: the rank of the additions.
        alpha: the scale of the additions is `alpha / rank`.
        targets: the parts of each layer: "query", "key", "value", "attention_output", "intermediate", "output".

    Raises:
        ArgumentError: the rank is below 1, or a part is unknown.

    Example:
        >>> LoraConfig(rank=4).targets
        ('query', 'value')

    Source: Hu et al., LoRA (2021).
    """

    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ("query", "value")

    def __post_init__(self) -> None:
        check_count("LoraConfig: rank", self.rank)
        unknown = [target for target in self.targets if target not in _PARTS]
        if unknown or not self.targets:
            raise ArgumentError(f"LoraConfig: targets should be among {_PARTS}, given: {self.targets!r}.")


def declare_lora(config: BertConfig, lora: LoraConfig) -> dict[str, Any]:
    """Declares the additions in the active scope. Returns them by name, with `lora_b` scaled, in the form of `encode`.

    `lora_b` starts at zero, so a new addition changes nothing.
    """
    found: dict[str, Any] = {}
    for path in target_paths(config, lora):
        inputs, outputs = encoder_shapes(config)[f"{path}/kernel"]
        normal = jax.nn.initializers.normal(1.0 / lora.rank)
        found[f"{path}/lora_a"] = ec.get_variable(f"{path}/lora_a", (inputs, lora.rank), normal)
        zeros = jax.nn.initializers.zeros
        found[f"{path}/lora_b"] = ec.get_variable(f"{path}/lora_b", (lora.rank, outputs), zeros) * _scale(lora)
    return found


def target_paths(config: BertConfig, lora: LoraConfig) -> list[str]:
    """Returns the paths of the layers with an addition."""
    parts = layer_parts(config)
    prefixes = dict.fromkeys(layer_prefix(config, layer) for layer in range(config.num_hidden_layers))
    return [f"{prefix}/{parts[target]}" for prefix in prefixes for target in lora.targets]


def merge_lora(variables: Mapping[str, np.ndarray], lora: LoraConfig) -> dict[str, np.ndarray]:
    """Adds the additions to the kernels and returns the variables of a model without LoRA.

    If the model keeps averages (`ema_decay`), the averages are merged, as evaluation uses them.

    Example:
        >>> merged = merge_lora(
        ...     {"d/kernel": np.zeros((2, 2)), "d/lora_a": np.ones((2, 1)), "d/lora_b": np.ones((1, 2))},
        ...     LoraConfig(rank=1, alpha=3.0),
        ... )
        >>> merged["d/kernel"].tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """
    scale = 1.0 if has_averages(variables) else _scale(lora)  # the average of `lora_b` is already scaled
    values = with_averages(variables)
    merged = {name: value for name, value in values.items() if not name.endswith(("/lora_a", "/lora_b"))}
    for name in values:
        if name.endswith("/lora_a"):
            path = name.removesuffix("/lora_a")
            addition = values[name] @ values[f"{path}/lora_b"] * scale
            merged[f"{path}/kernel"] = (values[f"{path}/kernel"] + addition).astype(values[name].dtype)
    return merged


def _scale(lora: LoraConfig) -> float:
    return lora.alpha / lora.rank
