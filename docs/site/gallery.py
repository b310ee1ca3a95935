"""Runs the programs of the gallery and shows what each of them wrote below its code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.site.names import ROOT

PAGE = "docs/gallery.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r'"gallery/([\w-]+\.html)"')


def shown(text: str) -> str:
    """The page with a frame for each file that a block names, below the block.

    Raises:
        ValueError: a block names no file.
    """

    def framed(block: re.Match[str]) -> str:
        names = _FILE.findall(block[1])
        if not names:
            raise ValueError(f"a block of {PAGE} writes no picture: {block[1][:60]!r}")
        frames = (
            f'<iframe class="picture" src="gallery/{name}" title="{name.removesuffix(".html")}"></iframe>'
            for name in names
        )
        return "\n\n".join([block[0], *frames, *(f"[Open {name}](gallery/{name})" for name in names)])

    return _BLOCK.sub(framed, text)


def make(text: str, target: Path) -> None:
    """Runs the blocks of a page as one program and copies the files that they name.

    Args:
        text: the page.
        target: the folder for the files; it may exist.

    Raises:
        RuntimeError: the program fails; the message is what it printed.
        FileNotFoundError: it does not write a file that it names.
    """
    blocks = _BLOCK.findall(text)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "ESTIMATOR_QUIET": "1"}
        Path(folder, "gallery.py").write_text("\n".join(blocks), encoding="utf-8")
        done = subprocess.run([sys.executable, "gallery.py"], cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the programs of {PAGE} fail:\n{done.stderr}")
        target.mkdir(parents=True, exist_ok=True)
        for name in _FILE.findall("\n".join(blocks)):
            (target / name).write_bytes(Path(folder, "gallery", name).read_bytes())
