"""The session `gpu`: tests and figures that need a GPU, with its name. Without a GPU, it is skipped by name."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import nox
from export_sessions import House
from nox.virtualenv import PassthroughEnv

FOLDER = "plugins/backends_gpu/tests"
TESTS = "tests"
#: The benchmarks of BERT and of a small network, with hand-written loops. BERT also runs with the Trainer of
#: transformers, if `-- --torch-python PYTHON` names a Python that has it.
PEERS = {
    "bert_base": "bert.py --size base --batch 32 --steps 100 --precision bfloat16 --rounds 9",
    "bert_base_full": "bert.py --size base --batch 32 --steps 100 --precision bfloat16 --rounds 9 --texts full",
    "bert_mini": "bert.py --size mini --rounds 9",
    "mlp_steps": "mlp_steps.py --rounds 9 --turns 5",
}


def cards() -> list[str]:
    """Returns the names of the GPUs that the driver of this machine reports."""
    if shutil.which("nvidia-smi") is None:
        return []
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.splitlines() if told.returncode == 0 else []


def options() -> argparse.ArgumentParser:
    """Returns the parser of the options after `--`."""
    parser = argparse.ArgumentParser(prog="nox -s gpu --")
    parser.add_argument("--torch-python", help="a Python with torch, transformers and accelerate")
    parts = [TESTS, *PEERS]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts of the session (default: all)")
    return parser


def define_card_session(house: House, everything: list[str], root: Path) -> None:
    """Adds the session."""

    @nox.session(python=house.python, default=False)
    def gpu(session: nox.Session) -> None:
        """Tests and figures on the cards of this machine; `-- --torch-python PYTHON` has torch and transformers."""
        args = options().parse_args(session.posargs)
        session.posargs.clear()  # pytest would read them as its own options
        found = cards()
        if not found:
            session.skip("nvidia-smi names no card: the session `gpu` needs one (`gpu_aot` compiles without)")
        session.log(f"cards: {', '.join(found)}")
        if isinstance(session.virtualenv, PassthroughEnv):
            session.log("--no-venv: what is installed in this Python is tested")
        else:
            install(session, house, everything)
        figures = root / ".nox" / "gpu"
        figures.mkdir(parents=True, exist_ok=True)
        with house.outside(session, FOLDER, "benchmarks", "examples") as env:
            seen = {**env, "JAX_PLATFORMS": None, "CARDS_FIGURES": str(figures / "figures.jsonl")}
            if TESTS in args.only:
                house.pytest(session, f"{FOLDER}/separate/on_cards.py", env=seen)
                house.pytest(session, "-m=not slow", FOLDER, env=env, report="gpu-plugin")
            for name, arguments in PEERS.items():
                if name in args.only:
                    script, *sizes = arguments.split()
                    torch = ["--torch-python", args.torch_python] if args.torch_python and script == "bert.py" else []
                    out = ["--json", str(figures / f"{name}.json")]
                    beside = {**seen, "PYTHONPATH": "benchmarks", "PYTHONSAFEPATH": None}
                    session.run("python", f"benchmarks/{script}", *sizes, *torch, *out, env=beside)
        session.log(f"figures of {found[0]} are in {figures}")

    _ = gpu


def install(session: nox.Session, house: House, everything: list[str]) -> None:
    """Installs all packages, and the CUDA plugin of jax."""
    extras = {"estimator_backends_gpu": ("cuda",)}
    session.install("--no-sources", *(house.wheel(package, *extras.get(package, ())) for package in everything))
    session.install("--group", "libraries", "--group", "test")
