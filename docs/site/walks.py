"""Follows pages of the documentation by their words alone: `python -m docs.site.walks FOLDER`.

A walk is a page, or one section of it. Its commands are the lines of its `console` blocks that begin with `$`. What
stands below a command is what it prints; `...` stands for anything. A Python block whose first line is a comment with a
file name, `# train.py`, is that file, and so is a `text` block with such a line. "`train.py` of [a page](local.md)" is
the file that stands on that page. All other Python blocks of the page are one program, which runs at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What a reader does -> the page that says how, and its section; "": the whole page.
FIRST, STORE, MIGRATION = "installation", "a run in an object store", "a migration"
SLURM, RAY, KUBERNETES = "own job on Slurm", "own job on Ray", "own manifest for Kubernetes"
WALKS = {
    FIRST: ("docs/install.md", "Wheels for another machine"),
    "own CSV trained and served": ("docs/first_hour.md", "Your own CSV, trained and served"),
    "own model_fn": ("docs/tutorial.md", ""),
    "own plugin": ("docs/plugins/tutorial.md", ""),
    "own job of two processes": ("docs/launch/local.md", ""),
    SLURM: ("docs/launch/slurm.md", ""),
    RAY: ("docs/launch/ray.md", ""),
    KUBERNETES: ("docs/launch/kubernetes.md", ""),
    STORE: ("docs/storage.md", "From an empty environment"),
    MIGRATION: ("docs/migrate/walk_through.md", ""),
}
_BLOCK = re.compile(
    r"^```(?P<language>python|console|text)\n(?P<text>.*?)^```$"
    r"|`(?P<file>[\w./-]+\.\w+)` of \[[^\]\n]+\]\((?P<page>[\w./-]+\.md)\)",
    re.DOTALL | re.MULTILINE,
)
#: A Slurm of two virtual nodes, where Debian's packages are and root walks.
_SLURM_SITE = ROOT / "plugins" / "launchers" / "tests" / "slurm_site.py"
_FILE = re.compile(r"# ([\w./-]+\.\w+)$")
#: Ports that the pages name; a walk takes free ones.
_PORTS = ("8080", "5000", "10000", "9000")
#: The program of the Python blocks that are no file.
_PROGRAM = "page.py"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that a page tells its reader to do.

    Args:
        command: words for a shell.
        shown: the lines that the page shows below it.
    """

    command: str
    shown: tuple[str, ...] = ()


#: How every walk begins.
BEGIN = Step(command="python3.11 -m venv venv && source venv/bin/activate")


def steps(page: str, section: str = "", folder: Path | None = None) -> list[Step]:
    """What a page tells its reader to do, in order.

    Args:
        page: its text.
        section: the heading of the part to read; "": all of it.
        folder: of the page; None: files that stand on other pages are left out.

    Raises:
        ValueError: there is no such heading, or another page has not the file.
    """
    found: list[Step] = []
    program: list[str] = []
    for block in _BLOCK.finditer(_section(page, section)):
        language, text = block["language"], block["text"]
        if language is None:
            found += [] if folder is None else [_elsewhere(block["file"], folder / block["page"])]
            continue
        name = _FILE.match(text.partition("\n")[0])
        if language == "console":
            found += _commands(text)
        elif name:
            found.append(Step(command=_written(name[1], text)))
        elif language == "python":
            program.append(text)
    if program:
        found += [Step(command=_written(_PROGRAM, "\n".join(program))), Step(command=f"python {_PROGRAM}")]
    return found


def _elsewhere(name: str, page: Path) -> Step:
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["text"] is not None and block["text"].startswith(f"# {name}\n"):
            return Step(command=_written(name, block["text"]))
    raise ValueError(f"{page} has no {name}")


def _section(page: str, heading: str) -> str:
    if not heading:
        return page
    before, found, after = page.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"there is no heading {heading!r} after {before[:40]!r}")
    return after.partition("\n## ")[0]


def _commands(text: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield Step(command=command, shown=tuple(line for line in shown if line.strip() not in ("", "...")))


def _written(name: str, text: str) -> str:
    folder = shlex.quote(os.path.dirname(name) or ".")
    return f"mkdir -p {folder}\ncat > {shlex.quote(name)} <<'END OF FILE'\n{text}END OF FILE"


def missing(shown: Sequence[str], printed: str) -> list[str]:
    """The lines of a page that a command did not print, in the order of the page."""
    left = iter(printed.splitlines())
    patterns = [".*".join(map(re.escape, line.split("..."))) for line in shown]
    return [
        line
        for line, pattern in zip(shown, patterns, strict=True)
        if not any(re.fullmatch(pattern, one) for one in left)
    ]


def walk(walked: Sequence[Step], folder: Path, env: dict[str, str]) -> float:
    """Does the steps in one shell, in an empty folder; returns the seconds they took.

    Raises:
        RuntimeError: a command failed, or did not print what the page shows; the message holds its output.
    """
    (folder / ".said").mkdir(parents=True)
    parts = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", f"cd {shlex.quote(str(folder))}"]
    for number, step in enumerate(walked):
        parts.append(f"echo {number} > {shlex.quote(str(folder / '.said' / 'last'))}")
        parts.append(f"{{ {step.command}\n}} > {shlex.quote(str(folder / '.said' / str(number)))} 2>&1")
    parts.append("wait; date +%s.%N")
    (folder / ".said" / "script.sh").write_text("date +%s.%N\n" + "\n".join(parts), encoding="utf-8")
    with subprocess.Popen(
        ["bash", str(folder / ".said" / "script.sh")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    ) as shell:
        try:
            printed, errors = shell.communicate()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # what a killed server has left, as `npx` leaves its own
    if shell.returncode:
        last = int((folder / ".said" / "last").read_text())
        said = (folder / ".said" / str(last)).read_text(encoding="utf-8")
        raise RuntimeError(f"status {shell.returncode} of `{walked[last].command}`:\n{said}{errors}")
    for number, step in enumerate(walked):
        said = (folder / ".said" / str(number)).read_text(encoding="utf-8")
        for line in missing(step.shown, said):
            raise RuntimeError(f"`{step.command}` does not print {line!r}, but:\n{said}")
    began, ended = map(float, printed.split())
    return ended - began


def main() -> int:
    """Follows every page, each from a new environment, and prints a table of the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="an empty folder; each walk has one of its own in it")
    parser.add_argument("--only", help="a part of the name of a walk")
    arguments = parser.parse_args()
    if arguments.only and not any(arguments.only in name for name in WALKS):
        parser.error(f"--only: no walk has {arguments.only!r} in its name; they are {', '.join(WALKS)}")
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "UV_"))}
    env = {**kept, "JAX_PLATFORMS": "cpu", "XDG_STATE_HOME": str(folder / "state"), "CHECKOUT": str(folder / FIRST)}
    env["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"  # Ray takes the `uv run` above the test command for that of the walk
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / FIRST)], check=True)
    print("| walk | page | commands | seconds |\n|---|---|---|---|")
    failed = 0
    for name, (page, section) in WALKS.items():
        if arguments.only and arguments.only not in name and name != FIRST:
            continue
        if why := _left_out(name, arguments.only):
            print(f"| {name} | {page} | left out: it needs {why} | |", flush=True)
            continue
        told = steps((ROOT / page).read_text(encoding="utf-8"), section, (ROOT / page).parent)
        ports = {port: _free_port() for port in _PORTS}
        own = [Step(command=_with_ports(step.command, ports), shown=step.shown) for step in told]
        try:
            with _slurm() if name == SLURM else nullcontext({}) as site:
                seconds = walk([BEGIN, *own], folder / name.replace(" ", "-"), {**env, **site})
        except RuntimeError as error:
            failed += 1
            print(f"| {name} | {page} | {len(told)} | failed: {error} |", flush=True)
        else:
            print(f"| {name} | {page} | {len(told)} | {seconds:.0f} |", flush=True)
        env |= {"PIP_FIND_LINKS": str(folder / FIRST / "wheels")}  # as the first walk says
    return int(bool(failed))


def _left_out(name: str, only: str | None) -> str:
    """What a walk needs that is not here; "": nothing."""
    if name == STORE and not (shutil.which("npm") and os.environ.get("STORAGE_TESTBENCH")):
        return "npm and STORAGE_TESTBENCH (CONTRIBUTING.md)"
    if name == MIGRATION and not (only and _runs("python3.7")):
        return "python3.7 and --only migration"
    if name == SLURM and not (
        shutil.which("sbatch") and shutil.which("munged", path="/usr/sbin") and os.geteuid() == 0
    ):
        return "Debian's slurm-wlm and munge, and root"
    return ""


@contextmanager
def _slurm() -> Generator[dict[str, str]]:
    """Starts a Slurm of two virtual nodes; yields what its commands find it by."""
    folder = tempfile.mkdtemp(prefix="slurm-")
    site = [sys.executable, str(_SLURM_SITE)]
    started = subprocess.run([*site, folder], stdout=subprocess.PIPE, text=True, check=True)
    try:
        yield {"SLURM_CONF": started.stdout.strip()}
    finally:
        subprocess.run([*site, "--stop", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def _with_ports(command: str, ports: Mapping[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(ports)})\b", lambda found: ports[found[0]], command)


def _runs(python: str) -> bool:
    return shutil.which(python) is not None and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def _free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
