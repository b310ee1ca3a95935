"""The words of a text, as the basic tokenizer of BERT divides it, computed with the Unicode tables of Python.

For ASCII, the Rust library does the same. Its tables are older, and in cased models it does not compose decomposed
letters. So texts with other characters are divided here first.
"""

from __future__ import annotations

import functools
import unicodedata

# Blocks of CJK characters. Each of them becomes a separate word.
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def basic_words(text: str, *, lower: bool) -> list[str]:
    """Divides a text into words and punctuation.

    Args:
        text: any text.
        lower: whether to convert to lower case and remove accents.

    Example:
        >>> basic_words("Où est-ce? 日本", lower=True)
        ['ou', 'est', '-', 'ce', '?', '日', '本']

    Source: `tokenization.BasicTokenizer` of google-research/bert; NFC and lower case as in transformers 4.
    """
    if lower:
        text = "".join(map(str.lower, text))  # letter by letter, so that a final sigma is not special
    cleaned = unicodedata.normalize("NFC", "".join(map(_cleaned, text)))
    words: list[str] = []
    for word in cleaned.split():
        if lower:
            word = _without_accents(word.lower())
        words.extend(_cut_at_punctuation(word))
    return " ".join(words).split()


@functools.lru_cache(maxsize=65536)
def _cleaned(character: str) -> str:
    code = ord(character)
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if code in (0, 0xFFFD) or category.startswith("C"):
        return ""
    if category == "Zs":
        return " "
    return f" {character} " if any(first <= code <= last for first, last in _CJK) else character


def _without_accents(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if unicodedata.category(letter) != "Mn")


def _cut_at_punctuation(word: str) -> list[str]:
    parts: list[str] = []
    inside = False
    for character in word:
        if _is_punctuation(character):
            parts.append(character)
            inside = False
        elif inside:
            parts[-1] += character
        else:
            parts.append(character)
            inside = True
    return parts


@functools.lru_cache(maxsize=65536)
def _is_punctuation(character: str) -> bool:
    code = ord(character)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(character).startswith("P")
