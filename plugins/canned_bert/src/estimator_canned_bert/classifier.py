"""An Estimator of sentences."""

from __future__ import annotations

import os
from typing import Any

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.model_fn import bert_model_fn_builder


class BertClassifier(ec.Estimator):
    """An Estimator that fine-tunes BERT or ALBERT for classification, or for regression with `regression=True`.

    Args:
        bert_config: the shape of the encoder. None: the configuration next to `init_checkpoint`.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        **options: arguments of `bert_model_fn_builder`: `num_labels`, `init_checkpoint`, `learning_rate`, ...

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> classifier = BertClassifier(BertConfig.of_size("tiny"), num_labels=3, learning_rate=1e-4)
        >>> classifier.config.precision
        'float32'
    """

    def __init__(
        self,
        bert_config: BertConfig | None = None,
        *,
        model_dir: str | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        plugins: Any = None,
        **options: Any,
    ) -> None:
        checkpoint: str | os.PathLike[str] | None = options.get("init_checkpoint")
        if bert_config is None:
            if checkpoint is None:
                raise ec.errors.ArgumentError(
                    "BertClassifier needs a BertConfig, or an init_checkpoint with one next to it."
                )
            bert_config = BertConfig.from_pretrained(checkpoint)
        self._bert_config = bert_config
        super().__init__(
            bert_model_fn_builder(bert_config, **options),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )

    @property
    def bert_config(self) -> BertConfig:
        """The shape of the encoder."""
        return self._bert_config
