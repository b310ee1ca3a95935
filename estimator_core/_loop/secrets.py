"""Secrets are masked in what a run writes about itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)|secret|token$|api[_-]?key|access[_-]?key|credential|private[_-]?key", re.I)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
_ASSIGNMENT = re.compile(r"(-{0,2}[\w.-]+)=(.*)", re.DOTALL)


def is_secret(name: str) -> bool:
    """Whether the value behind a name is to be masked.

    Example:
        >>> [name for name in ("api_key", "token_count", "wandb-token", "password") if is_secret(name)]
        ['api_key', 'wandb-token', 'password']
    """
    return _SECRET.search(name) is not None


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Command-line arguments with the values of secrets masked.

    Example:
        >>> without_secrets(["train.py", "--api-key=abc", "--password", "abc", "--url", "https://me:abc@host/"])
        ['train.py', '--api-key=***', '--password', '***', '--url', 'https://***@host/']
    """
    masked: list[str] = []
    expected = False
    for argument in arguments:
        assignment = _ASSIGNMENT.fullmatch(argument)
        if expected and not argument.startswith("-"):
            masked.append(MASK)
        elif assignment and is_secret(assignment[1]):
            masked.append(f"{assignment[1]}={MASK}")
        else:
            masked.append(without_user_info(argument))
        expected = argument.startswith("-") and assignment is None and is_secret(argument)
    return masked


def without_user_info(text: str) -> str:
    """A text in which user name and password of URLs are masked."""
    return _USER_INFO.sub(MASK, text)
