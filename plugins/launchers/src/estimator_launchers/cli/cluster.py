"""Show the run and the number of this process, the source of these facts, and the processes that it reaches.

Reads only the environment. With `--reach`, run it in all processes at once: process 0 listens, the others connect to
it, and a process that does not connect is named. `--devices` lets jax list its devices, and makes no connection.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from typing import Any

#: Variables in which schedulers and launchers describe a process.
_PREFIXES = ("JAX_", "SLURM_", "OMPI_COMM_", "PMI_", "MV2_COMM_", "SM_", "TPU_WORKER", "MEGASCALE_", "JOB_COMPLETION_")
_NAMES = ("TF_CONFIG", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator cluster`."""
    parser.add_argument("--reach", action="store_true", help="in all processes: check whether they reach process 0")
    parser.add_argument("--reach-secs", type=float, default=10.0, metavar="S", help="how long they wait (default: 10)")
    parser.add_argument("--devices", action="store_true", help="list the devices of this machine; imports jax")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints what this process knows. Returns 1 if processes do not reach each other."""
    from estimator_core.config import RunConfig
    from estimator_launchers.reaching import WELL, reached

    config = RunConfig()
    group = config.process_group
    told: dict[str, Any] = {
        "role": config.task_type,
        "process": 0 if group is None else group.index,
        "processes": 1 if group is None else group.count,
        "chief": config.is_chief,
        "source": "no source names other processes" if group is None else group.source,
        "coordinator": "" if group is None else group.coordinator or f"found by jax ({group.method})",
        "cards": _cards(None if group is None else group.local_device_ids),
        "host": socket.gethostname(),
        "variables": {name: value for name, value in sorted(os.environ.items()) if _tells(name)},
    }
    if args.reach:
        told["reached"] = reached(group, os.environ, args.reach_secs)
    if args.devices:
        told["devices"] = _devices()
    print(json.dumps(told, indent=2) if args.json else _table(told))
    return 0 if told.get("reached", WELL[0]).startswith(WELL) else 1


def _tells(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _cards(given: tuple[int, ...] | None) -> str:
    if given is None:
        return os.environ.get("JAX_LOCAL_DEVICE_IDS") or "those that jax finds"
    return ", ".join(map(str, given)) if given else "all that it sees on this machine"


def _devices() -> list[str]:
    import jax

    return [str(device) for device in jax.local_devices()]


def _table(told: dict[str, Any]) -> str:
    rows = {name: value for name, value in told.items() if name != "variables"}
    lines = [f"{name:<12} {', '.join(value) if isinstance(value, list) else value}" for name, value in rows.items()]
    return "\n".join([*lines, "variables", *(f"  {name}={value}" for name, value in told["variables"].items())])
