"""A package `ray` with what the driver uses before training. Environment variables select what fails."""

from pathlib import Path

_FILES = {
    "__init__.py": """
import os
class _Any:
    def __getattr__(self, name): return self
    def __call__(self, *words, **named): return self
def init(**cluster):
    if os.environ["FAKE_RAY"] == "init": raise ConnectionError("init fails")
get_runtime_context = remote = put = shutdown = _Any()
def get(reference):
    if os.environ["FAKE_RAY"] == "board": raise ConnectionError("the board is gone")
    return {}
""",
    "train/__init__.py": """
class UserCallback: pass
def ScalingConfig(**named): return named
RunConfig = FailureConfig = ScalingConfig
""",
    "train/collective.py": "",
    "train/v2/__init__.py": "",
    "train/v2/api/__init__.py": "",
    "train/v2/api/data_parallel_trainer.py": """
import os, time
class Waits:
    def fit(self): time.sleep(60)
def DataParallelTrainer(*words, **named):
    if os.environ["FAKE_RAY"] == "board": return Waits()
    raise ValueError("no such storage")
""",
    "util/__init__.py": "",
    "util/scheduling_strategies.py": """
def NodeAffinitySchedulingStrategy(*words, **named): return None
""",
}


def write(folder: Path) -> str:
    """Writes the package, and returns the folder to import it from."""
    for name, text in _FILES.items():
        file = folder / "ray" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(folder)
