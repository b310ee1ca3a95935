"""Tests of the completion scripts in the installed shells."""

import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from estimator_core.cli import main
from estimator_terminal import completion_script
from estimator_terminal.completion import offered

ASKED = [
    ("estimator checkp", "checkpoints"),
    ("estimator completion z", "zsh"),
    ("estimator checkpoints --var", "--variables"),
    ("estimator plugins --log-level de", "debug"),
    ("estimator plugins expl", "explain"),
]
IN_BASH = """
source "$1"
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
$(complete -p estimator | sed 's/.*-F \\([^ ]*\\).*/\\1/') estimator "${{COMP_WORDS[COMP_CWORD]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
IN_ZSH = """
fpath=("$1" $fpath); autoload -Uz compinit; compinit -u -D
print -r -- "$_comps[estimator]"
autoload -Uz +X _estimator && print -r -- loaded
"""


def script(shell: str, path: Path) -> Path:
    path.write_text(completion_script(shell))
    return path


def run_in(shell: str, *words: str) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(("words", "expected"), ASKED)
def test_bash_completes(tmp_path: Path, words: str, expected: str) -> None:
    path = script("bash", tmp_path / "estimator")
    assert expected in run_in("bash", "--norc", "-c", IN_BASH.format(words=words), "bash", str(path))


def test_bash_completes_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    path = script("bash", tmp_path / "estimator")
    found = run_in("bash", "--norc", "-c", IN_BASH.format(words="estimator checkpoints ru"), "bash", str(path))
    assert [one.rstrip("/") for one in found] == ["runs"]


@pytest.mark.parametrize(("words", "expected"), ASKED)
def test_fish_completes(tmp_path: Path, words: str, expected: str) -> None:
    path = script("fish", tmp_path / "estimator.fish")
    found = run_in("fish", "--no-config", "-c", f"source {path}; complete -C '{words}'")
    assert expected in found


def test_zsh_takes_the_script(tmp_path: Path) -> None:
    script("zsh", tmp_path / "_estimator")
    run_in("zsh", "-n", str(tmp_path / "_estimator"))
    assert run_in("zsh", "-f", "-c", IN_ZSH, "zsh", str(tmp_path)) == ["_estimator", "loaded"]


@pytest.mark.parametrize(("words", "expected"), ASKED)
def test_zsh_completes(tmp_path: Path, words: str, expected: str) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    script("zsh", tmp_path / "_estimator")
    start = f"PROMPT=; fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; print -r -- rea''dy\n"
    completed = " ".join([*words.split()[:-1], expected])
    with ZshTerminal(tmp_path) as zsh:
        zsh.types(start)
        zsh.waits_for("\nready")
        zsh.types(f"{words}\t")
        zsh.types("\x01print -r -- \n")  # moves to the beginning of the line, which the shell then prints unchanged
        zsh.waits_for(f"\n{completed}")


class ZshTerminal:
    """A zsh with a terminal, as in an interactive session."""

    def __init__(self, folder: Path) -> None:
        self._own, theirs = os.openpty()
        env = {**os.environ, "ZDOTDIR": str(folder), "TERM": "dumb"}
        self._process = subprocess.Popen(["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)

    def types(self, words: str) -> None:
        os.write(self._own, words.encode())

    def waits_for(self, words: str) -> None:
        ends = time.monotonic() + 60
        while words not in self._seen:
            ready, _, _ = select.select([self._own], [], [], max(0.0, ends - time.monotonic()))
            assert ready, f"{words!r} does not appear: {self._seen!r}"
            self._seen += os.read(self._own, 4096).decode(errors="replace").replace("\r", "")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert "checkpoints" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["completion", "fsih"])
    assert ended.value.code == 2
    assert "did you mean fish?" in capsys.readouterr().err


def test_names_that_need_a_program_are_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acme_partly.py").write_text(
        "from estimator_core.plugins import Component\n"
        "ESTIMATOR_PLUGIN_API = (1, 1)\n"
        "def estimator_components():\n"
        "    return [\n"
        "        Component(kind='hook', name='acme_plain', target='acme_partly:Hook', summary='One.'),\n"
        "        Component(kind='hook', name='acme_bound', target='acme_partly:Hook', needs='an input_fn'),\n"
        "    ]\n"
    )
    (metadata := tmp_path / "acme_partly-1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-partly\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[estimator.plugins]\nacme_partly = acme_partly\n")
    assert "acme_plain" in offered("hook")
    assert "acme_bound" not in offered("hook")
