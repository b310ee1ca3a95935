"""Tests that the pages for new users can be followed literally: commands exist, and the shown output is compared."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from docs.site.walks import ROOT, WALKS, Step, missing, steps, walk
from estimator_core.cli import command_parser

PAGE = """
```python
# place/train.py
print("trained 3 steps")
```

```console
$ python place/train.py
trained ... steps
$ cd place
```

```python
x = 1
```

Words.

```python
print(x)
```
"""


def commands() -> list[list[str]]:
    found = [step.command for page, section in WALKS.values() for step in steps((ROOT / page).read_text(), section)]
    own = [command.partition(" || ")[0].removesuffix("&") for command in found if command.startswith("estimator ")]
    return [shlex.split(command) for command in own]


def test_the_commands_of_the_pages_are_understood() -> None:
    listed = commands()
    assert len(listed) >= 7
    for _, name, *words in listed:
        command_parser(name).parse_args(words)


def test_every_walk_begins_with_what_it_installs() -> None:
    for page, section in WALKS.values():
        first = steps((ROOT / page).read_text(), section)[0].command
        assert first.startswith("python -m pip install "), page


def test_a_page_is_files_commands_and_one_program(tmp_path: Path) -> None:
    first, trains, enters, program, runs = steps(PAGE)
    assert "cat > place/train.py" in first.command
    assert trains == Step(command="python place/train.py", shown=("trained ... steps",))
    assert enters.command == "cd place"
    assert re.search(r"x = 1\n.*print\(x\)\n", program.command, re.DOTALL)
    seconds = walk(steps(PAGE), tmp_path / "walk", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    assert seconds > 0
    assert (tmp_path / "walk" / "place" / "page.py").is_file()
    assert runs.command == "python page.py"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Step(command="echo one; false"), "status 1 of `echo one; false`:\none"),
        (Step(command="echo one", shown=("two",)), "`echo one` does not print 'two', but:\none"),
    ],
)
def test_a_step_that_fails_or_prints_something_else_is_told(step: Step, told: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as failed:
        walk([Step(command="true"), step], tmp_path / "walk", {"PATH": "/usr/bin:/bin"})
    assert told in str(failed.value)


def test_lines_are_compared_in_order() -> None:
    assert missing(("a ...", "c"), "a b\nx\nc\n") == []
    assert missing(("c", "a ..."), "a b\nx\nc\n") == ["a ..."]


def test_a_section_that_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no heading 'Gone'"):
        steps("# Page\n\n## Here\n", "Gone")
