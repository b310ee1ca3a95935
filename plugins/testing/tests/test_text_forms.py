"""Tests of which arguments of a constructor can be written as text. An alias counts as the type that it names."""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Collection, Container, Iterator, MutableMapping, Sequence, Sized
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, Protocol, TypedDict, TypeVar, runtime_checkable

import pytest

from estimator_core.hooks import Hook
from estimator_testing.text_forms import needs_a_program

if TYPE_CHECKING:
    from estimator_core.estimator import Estimator
    from plugins.testing.tests.aliases import Loader, Seconds

Words = Sequence[str]
Place = str | PathLike[str]
Mode = Literal["min", "max"]
Deep = Annotated[Words, "sorted"]
Steps = NewType("Steps", int)
Number = TypeVar("Number", bound=float)
Anything = TypeVar("Anything")
Input = Callable[[str], object]
Source = Input | Hook
Either = Input | str


class Level(enum.Enum):
    LOW = 1


class Sizes(TypedDict):
    rows: int


@runtime_checkable
class Counts(Protocol):
    def __len__(self) -> int: ...


class Reads(Protocol):
    def read(self) -> str: ...


def written(
    words: Words, place: Place, mode: Mode, deep: Deep, steps: Steps, number: Number, anything: Anything,
    seconds: Seconds, either: Either, path: Path, nothing: None, free: Any, bare, *rest: Hook, name: str, **more: Hook,
) -> None: ...  # fmt: skip


def not_written(
    build: Input, source: Source, hook: Hook, estimator: Estimator, loader: Loader, level: Level, absent: Absent  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
) -> None: ...  # fmt: skip


def of_collections(
    names: Collection[str], table: MutableMapping[str, int], some: Container[str], length: Sized, raw: bytes,
    sizes: Sizes, counts: Counts, far: MutableMapping[str, Absent], either: bytes | Absent,  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
) -> None: ...  # fmt: skip


def of_no_collections(rows: Iterator[str], reads: Reads, kind: type[str], hooks: type[Hook]) -> None: ...


@dataclass
class OfFields:
    """Has a generated constructor."""

    place: Place
    hook: Hook


class Inherits(OfFields):
    """Inherits its constructor from another class."""


def of(target: Callable[..., Any]) -> dict[str, bool]:
    return {name: needs_a_program(target, one) for name, one in inspect.signature(target).parameters.items()}


def test_an_alias_stands_for_what_it_names() -> None:
    assert [name for name, needs in of(written).items() if needs] == []


def test_what_has_no_literal_is_known_under_any_name() -> None:
    assert [name for name, needs in of(not_written).items() if not needs] == []


def test_a_literal_is_an_instance_of_abstract_collections_and_of_a_typed_dict() -> None:
    assert [name for name, needs in of(of_collections).items() if needs] == []
    assert [name for name, needs in of(of_no_collections).items() if not needs] == []


@pytest.mark.parametrize("target", [OfFields, Inherits])
def test_constructors_of_dataclasses_too(target: type) -> None:
    assert of(target) == {"place": False, "hook": True}


def test_annotations_that_are_objects() -> None:
    assert not needs_a_program(written, inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, annotation=Words))
    assert needs_a_program(written, inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, annotation=Input))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`type NAME = ...` is a statement of Python 3.12")
def test_an_alias_of_a_statement() -> None:
    names: dict[str, Any] = {"Hook": Hook, "__name__": __name__}
    exec("type Seconds = float\ntype Owner = Hook\ndef make(seconds: Seconds, owner: Owner): ...", names)
    assert of(names["make"]) == {"seconds": False, "owner": True}
