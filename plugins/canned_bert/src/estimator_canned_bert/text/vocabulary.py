"""A WordPiece vocabulary made from texts, for models trained from scratch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from estimator_canned_bert.text.tokenizer import SPECIAL
from estimator_core.errors import ArgumentError


def build_vocabulary(
    texts: Iterable[str],
    path: str | os.PathLike[str],
    *,
    size: int = 8000,
    do_lower_case: bool = True,
    min_frequency: int = 2,
) -> Path:
    """Writes a vocab.txt of the most useful pieces of words; returns its path.

    Args:
        texts: what to learn it from, read once.
        path: the file to write.
        size: tokens at most.
        do_lower_case: lower-case texts and take accents off.
        min_frequency: how often two pieces must stand together to become one.

    Raises:
        ArgumentError: there are no texts, or the size is too small for the special tokens.
    """
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    if size <= len(SPECIAL):
        raise ArgumentError(f"A vocabulary of {size} tokens has no room for more than {', '.join(SPECIAL)}.")
    rules: Any = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case, strip_accents=do_lower_case)
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=min_frequency, special_tokens=list(SPECIAL), show_progress=False
    )
    rules.train_from_iterator(iter(texts), trainer)
    found = sorted(rules.get_vocab().items(), key=lambda item: item[1])
    if len(found) <= len(SPECIAL):
        raise ArgumentError("There are no texts to learn a vocabulary from.")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{token}\n" for token, _ in found), encoding="utf-8")
    return target
