"""Cases of BERT and ALBERT, on ids and on text."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_bert import BertClassifier, BertConfig
from estimator_canned_bert.text.transform import BertTokens
from tests.export_matrix.cases import ROWS, Case, Sample, config, trained

LENGTH = 8
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "boat", "sank", "##s", "a", "lived"]
TEXTS = np.array(["the boats sank", "a boat lived", "unknown", "The", "a a a", "sank", "boat, boat", ""], object)
LABELS = (np.arange(ROWS) % 2).astype(np.int32)
SMALL: dict[str, Any] = {
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.2,
}
CONFIGS = {
    "BERT": BertConfig(**SMALL),
    "ALBERT": BertConfig(architecture="albert", embedding_size=4, **SMALL),
    "BERT without dropout": BertConfig(**SMALL).without_dropout(),
}


@functools.cache
def tokens() -> BertTokens:
    """Returns the host transform of a small vocabulary."""
    path = Path(tempfile.mkdtemp(prefix="export-matrix-")) / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return BertTokens(path, LENGTH)


def make(model: str, sent: str) -> Sample:
    """Returns a trained classifier of two classes."""
    ids = tokens().apply({"text_a": TEXTS})
    estimator = BertClassifier(CONFIGS[model], num_labels=2, learning_rate=1e-3, config=config())
    sample = trained(estimator, ids, LABELS)
    if sent == "ids":
        return sample
    features = {name: ec.export.Feature((None, LENGTH), "int32") for name in ids}
    texts = {"text_a": ec.export.Feature((None,), "string")}
    receiver = ec.export.ServingInputReceiver(features, texts, transforms=[tokens()])
    return Sample(
        estimator=sample.estimator,
        features={"text_a": TEXTS},
        labels=LABELS,
        receiver=lambda: receiver,
        prepared=ids,
    )


def cases() -> list[Case]:
    """Returns both models, on ids and on text."""
    pairs = [(model, sent) for model in CONFIGS for sent in ("ids", "text")]
    cuts = {("BERT", "ids"): ("saved_model", "infer"), ("ALBERT", "ids"): ("stablehlo", "infer")}
    return [
        Case(group="texts", row=pair, make=functools.partial(make, *pair), cut=cuts.get(pair, ("onnx", "infer")))
        for pair in pairs
    ]
