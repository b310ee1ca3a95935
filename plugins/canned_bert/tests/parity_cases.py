"""The models and batches for the comparison with transformers.

They are made from seeds, so that they are the same on both sides. Needs numpy.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

#: The keys of config.json. All others have the defaults of transformers, without dropout.
CASES: dict[str, dict[str, Any]] = {
    "bert_pairs": {
        "model_type": "bert",
        "vocab_size": 40,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 24,
        "labels": 3,
        "length": 20,
        "pairs": True,
    },
    "bert_single": {
        "model_type": "bert",
        "vocab_size": 60,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 16,
        "labels": 2,
        "length": 16,
        "pairs": False,
    },
    "bert_regression": {
        "model_type": "bert",
        "vocab_size": 40,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 24,
        "hidden_act": "gelu_new",
        "labels": 1,
        "length": 12,
        "pairs": True,
    },
    "albert_pairs": {
        "model_type": "albert",
        "vocab_size": 40,
        "embedding_size": 8,
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 24,
        "labels": 3,
        "length": 20,
        "pairs": True,
    },
    "albert_groups": {
        "model_type": "albert",
        "vocab_size": 30,
        "embedding_size": 16,
        "hidden_size": 16,
        "num_hidden_layers": 4,
        "num_hidden_groups": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 16,
        "hidden_act": "gelu",
        "labels": 2,
        "length": 12,
        "pairs": False,
    },
    "bert_mini": {
        "model_type": "bert",
        "vocab_size": 500,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "max_position_embeddings": 128,
        "labels": 2,
        "length": 128,
        "pairs": True,
    },
}
#: For these cases only logits and loss are recorded, because their gradients would take megabytes.
LARGE = ("bert_mini",)
BATCH, STEPS, WARMUP, RATE, EPSILON, WEIGHT_DECAY = 6, 20, 4, 1e-3, 1e-6, 0.01


def config_of(case: dict[str, Any]) -> dict[str, Any]:
    """The config.json of a case."""
    shape = {key: value for key, value in case.items() if key not in ("labels", "length", "pairs")}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    own = {"classifier_dropout_prob": 0.0} if case["model_type"] == "albert" else {"classifier_dropout": 0.0}
    return {**shape, **dropout, **own, "layer_norm_eps": 1e-12}


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The value of a tensor of transformers. It depends only on the name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    normal = np.random.default_rng(seed).normal(size=shape)
    if "LayerNorm.weight" in name or "layer_norm.weight" in name:
        return (1.0 + 0.1 * normal).astype(np.float32)
    return ((0.05 if len(shape) == 1 else 0.5 / np.sqrt(shape[-1])) * normal).astype(np.float32)


def batch(case: dict[str, Any], number: int) -> dict[str, np.ndarray]:
    """The `number`-th batch: token ids, mask, segments and labels. The first example has the full length."""
    rng = np.random.default_rng(number)
    length = case["length"]
    ids = rng.integers(1, case["vocab_size"], size=(BATCH, length))
    lengths = rng.integers(length // 3, length + 1, size=BATCH) if case["pairs"] else np.full(BATCH, length)
    lengths[0] = length
    places = np.arange(length)[None, :]
    mask = (places < lengths[:, None]).astype(np.int32)
    first = (lengths * 0.6).astype(int)
    segments = ((places >= first[:, None]) & (mask > 0)).astype(np.int32) if case["pairs"] else np.zeros_like(mask)
    if case["labels"] == 1:
        labels: np.ndarray = rng.uniform(0, 5, size=BATCH).astype(np.float32)
    else:
        labels = rng.integers(0, case["labels"], size=BATCH).astype(np.int32)
    return {"ids": (ids * mask).astype(np.int32), "mask": mask, "segments": segments, "labels": labels}
