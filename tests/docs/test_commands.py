"""Tests that every command on a page is valid: its name, its options and their values exist."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import re
import shlex
from pathlib import Path

import pytest

from estimator_core.cli import command_parser
from estimator_core.errors import PluginLookupError
from estimator_core.plugins import default_plugins
from estimator_experiment.cli.named_component import parsed

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("plugins/*/README.md"))]
#: The commands that the pages show as mistakes, with their error.
MISTAKES = {"trian", "run program.py --shedule train"}
_BLOCK = re.compile(r"^```(?:text|console|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"(?:\$ )?(?:uv run )?(?:[A-Z_]+=\S+ )*estimator (?!\w+: )(.+)")
_INLINE = re.compile(r"(?<!`)`(?:uv run )?estimator ([^`\n]+)`")
#: The text after a command: an explanation in a second column, a comment, another command, or a redirection.
_REST = re.compile(r" {2,}| # | && | \|\| | \| | 2?> |&$|$")

#: The options of every command that stand before its name.
_BEFORE = re.compile(r"^(?:--(?:plugins|block-plugin|log-level) \S+ |--?[\w-]+ )+")


def in_blocks(page: str) -> list[str]:
    """Returns the words after `estimator` in the blocks of a page, without commands that show "..."."""
    lines = [line for block in _BLOCK.findall(page) for line in block.replace("\\\n", " ").splitlines()]
    return _words([match[1] for line in lines if (match := _LINE.match(line))])


def in_sentences(page: str) -> list[str]:
    """Returns the commands that are named in a sentence, often without their arguments."""
    return _words(_INLINE.findall(re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)))


def _words(found: list[str]) -> list[str]:
    words = [_REST.split(one, maxsplit=1)[0].strip() for one in found]
    return [one for one in words if one not in MISTAKES and not re.search(r"\.\.\.|COMMAND|^--help$|: error: ", one)]


def fault(words: str, *, whole: bool = True) -> str:
    """Returns the error of the parser of a command for some words, or an empty string if they are valid.

    Args:
        words: the words after `estimator`.
        whole: whether the words hold all arguments that the command needs.
    """
    name, *rest = shlex.split(_BEFORE.sub("", words))
    said = _said(name, rest)
    if whole or not re.search(r"are required: |expected one argument", said):
        return said
    options = [word for word in rest if word.startswith("-")]
    help_text = _said(name, [*(word for word in rest if word not in options), "--help"])
    return "".join(f"there is no option {one}" for one in options if one not in help_text)


def _said(name: str, rest: list[str]) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            command_parser(name).parse_args(rest)
    except PluginLookupError as error:
        return str(error)
    except SystemExit:
        return said.getvalue()
    return ""


def faults(page: str) -> list[str]:
    """Returns the invalid commands of a page, with their errors."""
    found = [(words, fault(words)) for words in in_blocks(page)]
    found += [(words, fault(words, whole=False)) for words in in_sentences(page)]
    return [f"estimator {words}: {said}" for words, said in found if said]


def component_faults(page: str) -> list[str]:
    """Returns the errors of components that commands of a page name with arguments that the component does not have."""
    words = [shlex.split(one) for one in in_blocks(page)]
    pairs = [pair for each in words for pair in itertools.pairwise(each)]
    named = [(option.removeprefix("--"), text) for option, text in pairs if option in ("--hook", "--exporter")]
    return [said for kind, text in named if "acme" not in text and (said := _said_of_component(kind, text))]


def _said_of_component(kind: str, text: str) -> str:
    name, arguments = parsed(text, f"--{kind}")
    given = [None] * {"hook": 0, "exporter": 2}[kind]  # the name of an exporter, and its receiver
    try:
        inspect.signature(default_plugins().get(kind, name)).bind(*given, **arguments)
    except (TypeError, PluginLookupError) as error:
        return f"--{kind} {text}: {error}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_components_of_commands_take_the_arguments_that_a_page_writes(page: Path) -> None:
    assert component_faults(page.read_text(encoding="utf-8")) == []


def test_a_wrong_argument_of_a_component_is_found() -> None:
    (one,) = component_faults('```text\nestimator run a.py --hook progress_bar --exporter "best(metric=auc)"\n```\n')
    assert "unexpected keyword argument 'metric'" in one


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_understood(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


def test_commands_are_found() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(in_blocks(text)) for text in texts) >= 120
    assert sum(len(in_sentences(text)) for text in texts) >= 150


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```text\nestimator runs lst DIR   shows them\n```\n", "invalid choice: 'lst'"),
        ("```console\n$ estimator run a.py --shcedule x > log\n```\n", "unrecognized arguments: --shcedule"),
        ("```text\nestimator --quiet run\n```\n", "are required: FILE"),
        ("Say `estimator exprot` first.\n", "there is no command"),
        ("Say `estimator run --shcedule` first.\n", "there is no option --shcedule"),
    ],
)
def test_a_wrong_command_is_found(text: str, said: str) -> None:
    (one,) = faults(text)
    assert said in one
