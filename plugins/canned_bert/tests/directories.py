"""Hugging Face directories of the parity cases, as transformers saves them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.parameters import encoder_shapes
from estimator_canned_bert.weights.names import hugging_face_names
from plugins.canned_bert.tests.parity_cases import CASES, config_of, weight

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict[str, np.ndarray]:
    """The recorded arrays of transformers for a case."""
    return load_file(RECORDED / "transformers" / f"{name}.safetensors")


def foreign_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """The shapes of transformers' tensors for a case, by transformers' names."""
    config, labels = BertConfig.from_dict(config_of(CASES[name])), CASES[name]["labels"]
    shapes = encoder_shapes(config) | {"output_weights": (labels, config.hidden_size), "output_bias": (labels,)}
    named = hugging_face_names(config)
    return {foreign.name: shapes[path][::-1] if foreign.transposed else shapes[path] for path, foreign in named.items()}


def hugging_face_directory(name: str, place: Path) -> Path:
    """Writes the directory of a case, and returns its path."""
    place.mkdir(parents=True, exist_ok=True)
    tensors = {key: weight(key, shape) for key, shape in foreign_shapes(name).items()}
    save_file(tensors, place / "model.safetensors")
    (place / "config.json").write_text(json.dumps(config_of(CASES[name])), encoding="utf-8")
    return place
