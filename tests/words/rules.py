"""The faults that a technical editor would reject: words used as in another language, long sentences, and fragments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.words.prose import Passage

LONGEST = 30
_PHRASES: dict[str, str] = {
    # Of time it is "after"; what something hides or protects may be behind it.
    r"(?<!hidden )\bbehind\b(?!\.$|[,;])"
    r"(?! (?:an? |the )?(?:\w+ )?(?:port|proxy|proxies|balancer|firewall|gateway|batcher|scenes)\b)": "after",
    r"\b(?:gives|gave|giving)\b": "returns, raises, writes, shows",
    r"\b(?:go|goes|going|went|gone) on\b": "continues",
    r"(?<!there )(?<!There )\b(?:is|are|was|were|be) no\b"
    r"(?! (?:longer|more|less|fewer|later|earlier|better|worse|slower|faster|larger|smaller|different)\b)": "is not a",
    r"\b(?:is|are|was|were|be) none of\b|\bnone of its\b": "is not of, is not one of",
    r"\b(?:tell|tells|told|telling) of\b": "names, reports, describes",
    r"\b(?:is|are|was|were|be) (?:an)?other ones?\b": "differs",
    r"\bhold(?:s|ing)? an? line\b": "keep a connection open",
    r"\bof (?:the|an?) \w+'s\b(?! \w)": "the ...'s",
    r"\b(?:\w+ )?as this \w+ calls it\b": "the name of the thing",
    r"\bbytes that (?:are|were) no\b": "that are not",
    r"\bby and by\b|\bso to speak\b|\bas it were\b": "nothing",
    r"\bwherefrom\b|\bwhereto\b|\bwherewith\b|\bthereof\b|\bthereby\b|\bhitherto\b|\bherewith\b": "a plain word",
    r"\bcounts? as such\b": "is",
    r"\b(?:makes?|made) known\b": "registers, announces",
    r"\b(?:lets|let) (?:itself|themselves)\b": "can be",
    r"\bas good as\b": "almost",
    r"\b(?:the|its|their|and) cures?\b": "what to do, the correction",
    r"\bof (?:its|their) own accord\b": "automatically",
    r"\bnot any(?:more| more)\b": "no longer",
    r"\bin (?:the )?one go\b": "at once",
    r"\bstands? (?:for itself|there)\b": "is",
    r"\bsuch (?:a )?one\b": "one",
    r"\bthe like\b": "say which",
}
PHRASES = {re.compile(pattern): better for pattern, better in _PHRASES.items()}
_END = re.compile(r"(?<=[.!?])[\"')\]]* +(?=[\w\"'(])|(?<=:) +(?=[A-Z])|; +")
_WORD = re.compile(r"\w[\w'.,/-]*")
_SHORTEST = 3
# Short and whole: begins with a verb ("Writes rows."), names what a docstring describes, answers, or heads a part.
_WHOLE = re.compile(
    r"[A-Z][a-z]*[^s]s \w|(?:See|The|An?|Each|Every|Source:) \w|(?:Yes|No|None|Context|Decision|Consequences)\.$"
    r"|.*\b(?:is|are|was|were|can|do|does|works|runs)\b"
)
_NO_SENTENCE = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|No|Fig)\.$")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing to rewrite.

    Args:
        line: the first line of its passage.
        rule: the rule that is violated.
        sentence: the sentence with the fault.
    """

    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.line}: {self.rule}: {self.sentence}"


def faults(passage: Passage) -> list[Fault]:
    """Returns the faults of a passage."""
    found = [
        Fault(line=passage.line, rule=f"{match.group()!r}, say {better}", sentence=_around(passage.text, match))
        for pattern, better in PHRASES.items()
        for match in pattern.finditer(passage.text)
    ]
    for sentence in sentences(passage.text):
        words = _WORD.findall(sentence)
        if len(words) > LONGEST:
            found.append(Fault(line=passage.line, rule=f"{len(words)} words", sentence=sentence))
    found += [Fault(line=passage.line, rule="half a sentence", sentence=one) for one in _halves(passage)]
    if passage.early:
        found.append(Fault(line=passage.early, rule="a line breaks in mid-sentence", sentence=passage.text))
    return found


def sentences(text: str) -> list[str]:
    """Returns the sentences of a passage. A semicolon separates two sentences, like a full stop."""
    parts: list[str] = []
    for part in _END.split(text):
        if parts and _NO_SENTENCE.search(parts[-1]):
            parts[-1] += " " + part
        elif part.strip():
            parts.append(part.strip())
    return parts


def _halves(passage: Passage) -> list[str]:
    """Returns sentences of one or two words without a verb, such as "Whole records."."""
    if passage.kind not in {"page", "docstring"}:
        return []
    return [
        one
        for one in sentences(passage.text)
        if one.endswith(".") and one[0].isupper() and 0 < len(_WORD.findall(one)) < _SHORTEST and not _WHOLE.match(one)
    ]


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - 50) : match.end() + 50]
