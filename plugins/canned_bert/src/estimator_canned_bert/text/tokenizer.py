"""The conversion of texts to ids of WordPiece or SentencePiece tokens, with the `tokenizers` library."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_canned_bert.text.basic import basic_words
from estimator_core.errors import ArgumentError

VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")
#: The file in which transformers describes the use of a vocab.txt.
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class Tokenizer:
    """Converts texts to token ids.

    Args:
        path: a vocab.txt (WordPiece), a tokenizer.json (WordPiece, or SentencePiece of ALBERT), or a directory with one
            of them.
        do_lower_case: whether the model of a vocab.txt is uncased. None: the tokenizer_config.json next to it decides;
            without one it is uncased. A tokenizer.json contains this setting.

    Raises:
        ArgumentError: the file does not exist, or is not a tokenizer of BERT or ALBERT.

    Source: `tokenization.FullTokenizer` of google-research/bert; `BertTokenizer` of transformers 4.
    """

    def __init__(self, path: str | os.PathLike[str], *, do_lower_case: bool | None = None) -> None:
        self.path = find_vocabulary(path)
        lower = self.do_lower_case = _is_uncased(self.path) if do_lower_case is None else do_lower_case
        self._rules = _from_vocabulary(self.path, lower) if self.path.suffix == ".txt" else _load(self.path)
        self._words = _words_only(self.path) if self.path.suffix == ".txt" else None
        self.pad_id = self._special("[PAD]", "<pad>")
        self.unknown_id = self._special("[UNK]", "<unk>")
        self.first_id = self._special("[CLS]")
        self.separator_id = self._special("[SEP]")

    @property
    def vocabulary_size(self) -> int:
        """The number of rows of a table that has all tokens: the largest id plus one."""
        # Not the number of tokens: a file may repeat a token, or omit ids.
        return 1 + max(self._rules.get_vocab().values())

    @property
    def fingerprint(self) -> str:
        """A hash that changes if the ids of a text may change."""
        return hashlib.sha256(self.path.read_bytes() + f"{self.do_lower_case} 1".encode()).hexdigest()[:16]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        r"""Returns the ids of the tokens of each text, without the special tokens around them. Uses several threads.

        Example:
            >>> import tempfile, pathlib
            >>> vocabulary = pathlib.Path(tempfile.mkdtemp(), "vocab.txt")
            >>> _ = vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhel\n##lo\n")
            >>> Tokenizer(vocabulary).encode(["Hello there"])
            [[5, 6, 1]]
        """
        if self._words is None:
            return [found.ids for found in self._rules.encode_batch(list(texts), add_special_tokens=False)]
        plain = [index for index, text in enumerate(texts) if text.isascii()]
        other = [index for index, text in enumerate(texts) if not text.isascii()]
        ids: list[list[int]] = [[] for _ in texts]
        prepared = [_prepared(texts[index], lower=self.do_lower_case) for index in other]
        for indices, rules, chosen in (
            (plain, self._rules, [texts[index] for index in plain]),
            (other, self._words, prepared),
        ):
            if indices:
                found: Any = rules.encode_batch(chosen, add_special_tokens=False)
                for index, one in zip(indices, found, strict=True):
                    ids[index] = one.ids
        return ids

    def _special(self, *names: str) -> int:
        for name in names:
            found = self._rules.token_to_id(name)
            if found is not None:
                return int(found)
        raise ArgumentError(
            f"The vocabulary {self.path} has no token {names[0]}: it is not a vocabulary of BERT or ALBERT."
        )


def find_vocabulary(path: str | os.PathLike[str]) -> Path:
    """Returns the vocabulary that a path names: the file itself, or the one in the directory or next to the checkpoint.

    Raises:
        ArgumentError: there is no vocabulary.
    """
    place = Path(path)
    if place.is_file() and place.suffix in (".txt", ".json"):
        return place
    directory = place if place.is_dir() else place.parent
    for name in VOCABULARY_FILES:
        if (directory / name).is_file():
            return directory / name
    raise ArgumentError(
        f"There is no vocabulary at {place}: name a vocab.txt or tokenizer.json, or a directory with one of them."
    )


def _is_uncased(path: Path) -> bool:
    """Returns whether a vocab.txt belongs to an uncased model. The configuration next to it decides.

    Raises:
        ArgumentError: the configuration cannot be read, or has settings that are not supported for a vocab.txt.
    """
    config = path.with_name(TOKENIZER_CONFIG)
    if path.suffix != ".txt" or not config.is_file():
        return True
    try:
        told = dict(json.loads(config.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ArgumentError(f"{config} cannot be read: {error}. Download it again.") from error
    lower = bool(told.get("do_lower_case", True))
    for name, usual in (("strip_accents", lower), ("tokenize_chinese_chars", True)):
        if told.get(name) is not None and told[name] != usual:
            raise ArgumentError(
                f"{config} sets {name}={told[name]}, which is not supported with a vocab.txt. Give the "
                "tokenizer.json of the model as the vocabulary."
            )
    return lower


def read_vocabulary(path: Path) -> list[str]:
    """Returns the tokens of a vocab.txt in the order of their ids. A repeated token has the later id.

    Raises:
        ArgumentError: the file is empty, or not UTF-8.
    """
    try:
        # Not splitlines: vocabularies contain characters that it treats as line ends.
        tokens = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"The vocabulary {path} is not UTF-8 at byte {error.start}. Download it again.") from error
    tokens = [token.rstrip("\r") for token in tokens]
    if tokens == [""]:
        raise ArgumentError(f"The vocabulary {path} is empty. Download it again.")
    return tokens


def _from_vocabulary(path: Path, lower: bool) -> Any:
    from tokenizers import normalizers, pre_tokenizers

    rules = _wordpiece(path)
    rules.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=lower, lowercase=lower
    )
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return rules


def _words_only(path: Path) -> Any:
    """Returns the same tokenizer for texts whose words are already separated."""
    from tokenizers import pre_tokenizers

    rules = _wordpiece(path)
    rules.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return rules


def _wordpiece(path: Path) -> Any:
    import tokenizers
    from tokenizers import models

    tokens = read_vocabulary(path)
    vocabulary: dict[str, int] = {token: index for index, token in enumerate(tokens)}
    rules = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    rules.add_special_tokens([token for token in SPECIAL if token in vocabulary])
    return rules


def _load(path: Path) -> Any:
    import tokenizers

    try:
        rules = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exceptions
        raise ArgumentError(f"{path} is not a tokenizer: {error}. Download it again.") from error
    rules.no_padding()
    rules.no_truncation()
    return rules


_SPECIAL_PATTERN = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


def _prepared(text: str, *, lower: bool) -> str:
    """Returns the words, separated by spaces. Special tokens stay whole."""
    words: list[str] = []
    for part in _SPECIAL_PATTERN.split(text):
        words.extend([part] if part in SPECIAL else basic_words(part, lower=lower))
    return " ".join(words)
