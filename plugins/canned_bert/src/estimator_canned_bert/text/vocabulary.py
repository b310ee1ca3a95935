"""A WordPiece vocabulary built from texts, for models trained from scratch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from estimator_canned_bert.text.basic import basic_words
from estimator_canned_bert.text.tokenizer import SPECIAL
from estimator_core.errors import ArgumentError
from estimator_core.storage import draft_of


def build_vocabulary(
    texts: Iterable[str],
    path: str | os.PathLike[str],
    *,
    size: int = 8000,
    do_lower_case: bool = True,
    min_frequency: int = 2,
) -> Path:
    """Writes a vocab.txt of the most useful pieces of words, and returns its path.

    Args:
        texts: the texts to learn from, read once.
        path: the file to write.
        size: the maximum number of tokens.
        do_lower_case: whether to convert texts to lower case and remove accents.
        min_frequency: the number of times that two pieces must be adjacent to be joined.

    Raises:
        ArgumentError: there are no texts, or the size is too small for the special tokens.
    """
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    if size <= len(SPECIAL):
        raise ArgumentError(f"A vocabulary of {size} tokens has no room for more than {', '.join(SPECIAL)}.")
    words: Counter[str] = Counter()
    for text in texts:
        words.update(basic_words(text, lower=do_lower_case))
    # Letters receive their ids here. The trainer would number them in the order of a hash table, and break ties by
    # number.
    letters = sorted({letter for word in words for letter in word})[: (size - len(SPECIAL)) // 2]
    fixed = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    rules: Any = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=min_frequency, special_tokens=fixed, show_progress=False
    )
    rules.train_from_iterator((" ".join([word] * count) for word, count in sorted(words.items())), trainer)
    found = sorted(rules.get_vocab().items(), key=lambda item: item[1])
    if len(found) <= len(SPECIAL):
        raise ArgumentError("There are no texts to learn a vocabulary from.")
    target = Path(path)
    write_at_once(target, "".join(f"{token}\n" for token, _ in found))
    return target


def write_at_once(path: Path, text: str) -> None:
    """Writes a file that several processes may write at the same time. Every reader finds a complete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(text, encoding="utf-8")
