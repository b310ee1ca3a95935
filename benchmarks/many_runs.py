"""`estimator runs list`, `compare` and `plot` over many long runs: seconds, and the peak memory of each command.

    uv run python benchmarks/many_runs.py [--runs 500] [--points 100000] [--json FILE]

The runs are files: a record, and a line of results for each point. Each command is measured twice: first without any
digest beside the results, and then again.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from estimator_runs.records.digest_cache import KEPT


def leave_runs(folder: Path, runs: int, points: int) -> None:
    """Writes the files that runs of five rates, with as many seeds as needed, leave."""
    generator = random.Random(0)
    noise = [generator.random() for _ in range(997)]
    for number in range(runs):
        seed, rate = divmod(number, 5)
        path = folder / f"{number:04d}"
        (path / "eval").mkdir(parents=True)
        record = {"run_config": {"tf_random_seed": seed}, "hparams": {"rate": 10.0**-rate}}
        (path / "run.json").write_text(json.dumps({**record, "ended": {"step": points, "reason": "reached it"}}))
        with (path / "eval" / "metrics.jsonl").open("w") as file:
            file.writelines(
                f'{{"global_step": {step}, "metrics": {{"loss": '
                f"{(1 + rate) / step**0.5 + 0.01 * noise[(step + number) % 997]:.6g}}}}}\n"
                for step in range(1, points + 1)
            )


def measured(words: list[str], folder: Path) -> dict[str, float]:
    """Returns the seconds and the peak MiB of a command, which must succeed."""
    began = time.perf_counter()
    code = (
        "import resource, sys\n"
        "from estimator_core.cli import main\n"
        f"assert main({words!r}) == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return {"seconds": time.perf_counter() - began, "MiB": int(done.stderr.split()[-1]) / 1024}


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        leave_runs(folder / "runs", args.runs, args.points)
        for words in (["runs", "list", "runs"], ["runs", "compare", "runs"], ["runs", "plot", "runs"]):
            for name in (words[1], f"{words[1]} again"):
                rounds: list[dict[str, float]] = []
                for _ in range(args.rounds):
                    for kept in folder.rglob(KEPT) if name == words[1] else ():
                        kept.unlink()
                    rounds.append(measured(words, folder))
                found[name] = max(rounds, key=lambda one: one["MiB"])
                print(f"{name:<14} {found[name]['seconds']:8.1f} s {found[name]['MiB']:8.0f} MiB", flush=True)
        found["page"] = {"KiB": (folder / "runs.html").stat().st_size / 1024}
    print(f"{args.runs} runs of {args.points} points; the page has {found['page']['KiB']:.0f} KiB")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
