# ruff: noqa: RUF001
"""Ten thousand lines of every kind of text, and a vocabulary. They are the same on every machine. Needs no packages."""

from __future__ import annotations

import random

LINES, BLOCK = 10_000, 100
WORDS = [
    "the",
    "a",
    "of",
    "to",
    "and",
    "in",
    "that",
    "was",
    "his",
    "it",
    "with",
    "as",
    "had",
    "for",
    "she",
    "not",
    "at",
    "but",
    "be",
    "my",
    "on",
    "have",
    "him",
    "is",
    "said",
    "me",
    "which",
    "by",
    "so",
    "this",
    "running",
    "unbelievable",
    "tokenization",
    "naïve",
    "café",
    "résumé",
    "Ångström",
    "STRASSE",
    "Straße",
    "coöperate",
    "façade",
    "jalapeño",
    "Zürich",
    "Ελλάδα",
    "ΟΔΟΣ",
    "ὈΔΥΣΣΕΎΣ",
    "Москва",
    "ЁЛКА",
    "Київ",
    "İstanbul",
    "ǅungla",
    "ﬁnal",
    "Ⅷ",
    "½",
    "résumé",
    "नमस्ते",
    "สวัสดี",
    "مرحبا",
    "שלום",
    "日本語",
    "中文字",
    "한국어",
    "ひらがな",
    "カタカナ",
    "don't",
    "e-mail",
    "U.S.A.",
    "3.14",
    "1,000",
    "100%",
    "$5",
    "C++",
    "#tag",
    "@user",
    "x_y",
]
#: The ranges of characters to draw from: controls, spaces, punctuation, many scripts, emoji, rare and new characters.
RANGES = (
    (0x00, 0x1F),
    (0x20, 0x7E),
    (0x7F, 0xFF),
    (0x100, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x3FF),
    (0x400, 0x52F),
    (0x590, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1E00, 0x1FFF),
    (0x2000, 0x206F),
    (0x20A0, 0x214F),
    (0x2E00, 0x2E5D),
    (0x3000, 0x30FF),
    (0x3400, 0x3410),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xE000, 0xE010),
    (0xF900, 0xFAFF),
    (0xFE00, 0xFE6F),
    (0xFF00, 0xFFFD),
    (0x10000, 0x1005D),
    (0x1F300, 0x1FAFF),
    (0x20000, 0x20100),
    (0xE0020, 0xE007F),
)


def lines() -> list[str]:
    """The lines. Some are empty, some have words of thousands of letters, and some have the names of special tokens."""
    rng = random.Random(20_11)
    return [_line(rng, number) for number in range(LINES)]


def _line(rng: random.Random, number: int) -> str:
    kind = number % 10
    if kind == 0:
        return "" if number % 20 else " \t  "
    if kind == 1:
        return "".join(chr(rng.randint(*rng.choice(RANGES))) for _ in range(rng.randint(1, 60)))
    if kind == 2:
        return rng.choice("abcé日") * rng.choice((99, 100, 101, 500, 2000)) + " end"
    if kind == 3:
        return " ".join(rng.choice((*WORDS, "[SEP]", "[MASK]", "[unk]")) for _ in range(rng.randint(1, 12)))
    if kind == 4:
        return rng.choice(WORDS) + "".join(chr(rng.randint(0x1F300, 0x1FAFF)) for _ in range(rng.randint(1, 9)))
    if kind == 5:
        return rng.choice(WORDS).join(chr(rng.randint(*rng.choice(RANGES[:3]))) for _ in range(rng.randint(2, 9)))
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 30))]
    changed = [rng.choice((str.upper, str.title, str.lower, str))(word) for word in words]
    return rng.choice((" ", "  ", "\t", "\u00a0", "\u3000", "\u2028")).join(changed)


def vocabulary() -> list[str]:
    """Special tokens, single letters at the start of and inside words, pieces of the words, and whole words."""
    rng = random.Random(7)
    found = dict.fromkeys(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
    for word in WORDS:
        for form in (word, word.lower(), word.upper()):
            found |= dict.fromkeys(form[:3]) | dict.fromkeys(f"##{letter}" for letter in form[1:4])
            if rng.random() < 0.5:
                found |= {form: None, form[:2]: None, f"##{form[-2:]}": None}
    letters = "abcdefghijklmnopqrstuvwxyz0123456789αβγδεσςабвгд日本中文"
    found |= dict.fromkeys(letters) | dict.fromkeys(f"##{letter}" for letter in letters)
    found |= dict.fromkeys("!#$%&'()*+,-./:;<=>?@[]^_`{|}~…—«»。、")
    return [token for token in found if token.strip() and not set(token) & set("\r\n")]
