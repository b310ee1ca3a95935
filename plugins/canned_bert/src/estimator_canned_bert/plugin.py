"""The components and commands of estimator-canned-bert. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """Returns the model, the host transform of its exports, and the reader of directories of transformers."""
    return [
        Component(
            kind="model",
            name="bert_classifier",
            target="estimator_canned_bert:BertClassifier",
            summary="BERT or ALBERT, fine-tuned on sentences and pairs of them.",
        ),
        Component(
            kind="transform",
            name="bert_tokens",
            target="estimator_canned_bert:BertTokens",
            summary="Token ids of WordPiece or SentencePiece from text.",
        ),
        Component(
            kind="initial_values",
            name="transformers",
            target="estimator_canned_bert:TransformersCheckpoint",
            summary="Values of a directory of transformers.",
            reads=(
                "model.safetensors",
                "model.safetensors.index.json",
                "pytorch_model.bin",
                "pytorch_model.bin.index.json",
            ),
        ),
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator bert-classifier`."""
    return [
        Command(
            name="bert-classifier",
            target="estimator_canned_bert.cli.bert_classifier",
            summary="Fine-tune BERT on texts: train, evaluate, predict, export.",
        )
    ]
