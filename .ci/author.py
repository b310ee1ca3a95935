"""Measures the way from an empty directory to a passing plugin of each kind, by the commands of the tutorial.

`python .ci/author.py --wheel=NAME=PATH ... --kind=KIND:PACKAGES ... [--only KIND ...] [--write]`. Each kind gets an
environment of its own. Wheels replace the packages that an index would supply.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import subprocess
import tempfile
import time
import tokenize
from pathlib import Path

from footprint import busy_words

PAGE = Path(__file__).parents[1] / "docs" / "plugins" / "time_to_green.md"
HEAD = """# From an empty directory to a green plugin

Each row is an empty directory and an empty environment, in which a script types what
[tutorial.md](tutorial.md) says in its first section. All files come from `estimator new-plugin`, and the tests are
green before the author has written a line. Lines are lines of code, without blank ones, comments and docstrings: those
of the component that he makes his own, those of its tests, and those of the whole package. `uv run nox -s author --
--write` writes this page.{busy}

| kind | install | new-plugin | install it | pytest | doctor | all seconds | tests | component | its tests | package |
|---|---|---|---|---|---|---|---|---|---|---|
"""
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    """Returns the number of lines that contain a part of a statement, without docstrings."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - told)


def row(kind: str, uv: str, wheels: dict[str, str], packages: list[str], folder: Path) -> str:
    """Runs the commands, and reports how long each takes.

    Raises:
        SystemExit: a command fails. The message is its output.
    """
    environment = folder / "environment"
    path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
    # nox names the environment of its session in UV_PYTHON, which uv prefers to VIRTUAL_ENV.
    left_out = ("ESTIMATOR_", "PYTHON", "UV_PYTHON")
    given = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    given |= {"PATH": path, "VIRTUAL_ENV": str(environment), "JAX_PLATFORMS": "cpu"}
    given |= {"UV_FIND_LINKS": str(Path(wheels["estimator_core"]).parent)}  # for the requirements of a package's tests

    def run(*words: str, cwd: Path = folder) -> tuple[float, str]:
        began = time.perf_counter()
        done = subprocess.run(words, cwd=cwd, env=given, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{kind}: {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return time.perf_counter() - began, done.stdout

    name = f"acme-{kind.replace('_', '-')}"
    chosen = [wheels[one] for one in ("estimator_core", "estimator_testing", *packages)]
    run(uv, "venv", "--quiet", "--python", "3.11", str(environment))
    installed, _ = run(uv, "pip", "install", "--quiet", *chosen)
    written, _ = run("estimator", "new-plugin", name, "--kind", kind)
    project = folder / name
    itself, _ = run(uv, "pip", "install", "--quiet", "--editable", ".[test]", cwd=project)
    tested, output = run("python", "-m", "pytest", "-q", cwd=project)
    examined, _ = run("estimator", "plugins", "doctor", name, cwd=project)
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None, output
    seconds = (installed, written, itself, tested, examined)
    (component,) = project.glob(f"src/*/{kind}.py")
    sources = [component, project / "tests" / f"test_{kind}.py"]
    own, tests = (code_lines(one.read_text(encoding="utf-8")) for one in sources)
    package = sum(code_lines(one.read_text(encoding="utf-8")) for one in project.rglob("*.py"))
    numbers = " | ".join(f"{one:.1f}" for one in (*seconds, sum(seconds)))
    return f"| {kind} | {numbers} | {passed[1]} | {own} | {tests} | {package} |"


def main() -> None:
    """Prints the table, and writes the page if requested."""
    parser = argparse.ArgumentParser(description="Measure the way to a green plugin.")
    parser.add_argument("--wheel", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND:PACKAGES")
    parser.add_argument("--only", nargs="+", default=(), metavar="KIND")
    parser.add_argument("--uv", default="uv", help="the installer")
    parser.add_argument("--write", action="store_true", help="write their rows into the page")
    args = parser.parse_args()
    wheels = dict(one.split("=", 1) for one in args.wheel)
    order = [one.partition(":")[0] for one in args.kind]
    if unknown := sorted(set(args.only) - set(order)):
        parser.error(f"--only: there is no kind {', '.join(unknown)}; kinds are {', '.join(order)}")
    for kind, _, packages in (one.partition(":") for one in args.kind):
        if args.only and kind not in args.only:
            continue
        with tempfile.TemporaryDirectory(prefix="author-") as folder:
            found = row(kind, args.uv, wheels, packages.split(",") if packages else [], Path(folder))
        print(found, flush=True)
        if args.write:
            rows = {**on_the_page(), kind: found}
            PAGE.write_text(
                HEAD.format(busy=busy_words()) + "".join(f"{rows[one]}\n" for one in order if one in rows),
                encoding="utf-8",
            )


def on_the_page() -> dict[str, str]:
    """Returns the rows of the page, by kind."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    return {match[1]: match[0] for match in re.finditer(r"^\| (\w+) \| \d.*\|$", text, re.MULTILINE)}


if __name__ == "__main__":
    main()
