"""Reuses modules that an earlier session has compiled. Without them, a first import of jax takes three times as long.

Python uses a compiled module only if its source still has the same size and time, as files that uv links do.
"""

import shutil
import tempfile
from pathlib import Path

_KEPT = tempfile.TemporaryDirectory(prefix="compiled-modules-")
_shared: list[Path] = []


def share_compiled_modules(environment: str) -> None:
    """Copies the compiled modules of earlier environments to the sources of this one, which have the same versions."""
    kept, this = Path(_KEPT.name), Path(environment)
    if _shared and _shared[-1] != this:
        for compiled in _compiled(_shared[-1]):
            _copy(_shared[-1] / compiled, kept / compiled)
    _shared.append(this)
    for compiled in _compiled(kept):
        module = (this / compiled).parent.parent / f"{compiled.name.partition('.')[0]}.py"
        if module.exists():
            _copy(kept / compiled, this / compiled)


def _compiled(environment: Path) -> list[Path]:
    files = environment.glob("lib/python3*/site-packages/**/__pycache__/*.pyc")
    return [file.relative_to(environment) for file in files]


def _copy(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
