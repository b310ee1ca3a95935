"""Real text without a download: pieces of the help topics of Python. The class is the subject of the topic."""

from __future__ import annotations

import random
import re
from pathlib import Path
from pydoc_data.topics import topics

#: The topics of the language reference by class.
CLASSES = {
    "debugger": ("debugger",),
    "statements": ("compound",),
    "strings": ("string-methods", "formatstrings"),
}
WORDS, SHORTEST = 24, 8


def examples(seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of class and text of 8 to 24 words, each once. The seed determines the order."""
    found: list[tuple[str, str]] = []
    for label, names in CLASSES.items():
        for paragraph in (part for name in names for part in re.split(r"\n\s*\n", topics[name])):
            words = paragraph.split()
            pieces = [words[start : start + WORDS] for start in range(0, len(words), WORDS)]
            found += [(label, " ".join(piece)) for piece in pieces if len(piece) >= SHORTEST]
    found = list(dict.fromkeys(found))
    random.Random(seed).shuffle(found)
    return found


def write_files(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Writes train.tsv, dev.tsv and test.tsv (three, one and one fifth). Returns their examples."""
    found = examples()
    fifth = len(found) // 5
    parts = {"test": found[:fifth], "dev": found[fifth : 2 * fifth], "train": found[2 * fifth :]}
    for name, rows in parts.items():
        lines = [text if name == "test" else f"{label}\t{text}" for label, text in rows]
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return parts
