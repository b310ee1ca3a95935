"""Real text without a download: paragraphs of the help topics of Python; the class is what the topic is about."""

from __future__ import annotations

import random
import re
from pathlib import Path
from pydoc_data.topics import topics

#: The longest topics of the language reference: each is a class.
CLASSES = ("specialnames", "compound", "types", "debugger", "formatstrings", "string-methods", "typesseq", "import")


def examples(seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of class and paragraph, in an order of this seed."""
    found = []
    for name in CLASSES:
        paragraphs = re.split(r"\n\s*\n", topics[name])
        texts = [" ".join(paragraph.split()) for paragraph in paragraphs]
        found += [(name, text) for text in dict.fromkeys(texts) if len(text.split()) >= 6]
    random.Random(seed).shuffle(found)
    return found


def write_files(folder: Path, *, test: int = 150, dev: int = 150) -> dict[str, list[tuple[str, str]]]:
    """Writes train.tsv, dev.tsv and test.tsv; gives what is in them."""
    found = examples()
    parts = {"test": found[:test], "dev": found[test : test + dev], "train": found[test + dev :]}
    for name, rows in parts.items():
        lines = [text if name == "test" else f"{label}\t{text}" for label, text in rows]
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return parts
