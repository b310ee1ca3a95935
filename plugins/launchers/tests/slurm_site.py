"""A Slurm of virtual nodes on this machine, from Debian's packages (slurm-wlm, munge), as root and without systemd.

`python slurm_site.py FOLDER` starts it, prints the value for SLURM_CONF, and ends. `python slurm_site.py --stop FOLDER`
ends the daemons that it started. jax must be able to resolve node names, so the daemons of the nodes have their own
hosts file.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_PORTS = range(26800, 28000, 4)
NODES = ("n1", "n2")
NEEDS = ("slurmctld", "slurmd", "munged", "sbatch", "unshare")
CONF = """
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
JobRequeue=1
KillWait=10
MinJobAge=3600
FirstJobId={first_job}
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=60 OverSubscribe=NO
"""


def missing() -> str:
    """Returns why this machine cannot have a site, or "" if it can."""
    absent = [program for program in NEEDS if _program(program) is None]
    if absent:
        return f"{', '.join(absent)} is not installed (Debian: slurm-wlm, munge)"
    return "" if os.geteuid() == 0 else "Slurm's daemons are started as root here"


def start(folder: Path) -> dict[str, str]:
    """Starts the controller and the nodes, and returns the environment in which the commands of Slurm find them."""
    host, port = socket.gethostname().split(".")[0], _free_ports()
    # jax derives the port of a job from its number, so jobs of two sites on one machine need different numbers.
    first_job = 1 + 25 * (port - _PORTS.start)
    for name in ("state", "log", "munge", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    ports = {"port": port, "first": port + 1, "last": port + 2}
    conf.write_text(CONF.format(host=host, folder=folder, first_job=first_job, **ports))
    (folder / "hosts").write_text(f"127.0.0.1 localhost {host} {' '.join(NODES)}\n")
    munge = folder / "munge"
    munge.chmod(0o711)
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o400)
    files = [f"--{what}={munge}/{name}" for what, name in (("key-file", "key"), ("socket", "munge.sock"))]
    files += [f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
    _run("munged", "--force", *files)
    env = {"SLURM_CONF": str(conf)}
    _run("slurmctld", "-c", env=env)
    for node in NODES:
        line = f"mount --bind {folder}/hosts /etc/hosts && exec {_program('slurmd')} -N {node}"
        _run("unshare", "-m", "sh", "-c", line, env=env)
    deadline = time.monotonic() + 60
    while _idle(env) < len(NODES):
        if time.monotonic() > deadline:
            raise RuntimeError((folder / "log" / "slurmctld.log").read_text())
        time.sleep(0.5)
    return env


def stop(folder: Path) -> None:
    """Ends the daemons by their ids."""
    for path in (*folder.glob("slurmd-*.pid"), folder / "slurmctld.pid", folder / "munge" / "pid"):
        if path.exists():
            try:
                os.kill(int(path.read_text()), signal.SIGTERM)
            except ProcessLookupError:
                continue


def _idle(env: dict[str, str]) -> int:
    command = ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    return len(done.stdout.split())


def _run(program: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    command = [_program(program) or program, *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _free_ports() -> int:
    """Returns the first of three consecutive free ports. The search starts at a different port in each process."""
    start = os.getpid() % len(_PORTS)
    for first in (*_PORTS[start:], *_PORTS[:start]):
        try:
            for port in range(first, first + 3):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first
    raise RuntimeError("no ports are free")


if __name__ == "__main__":
    if sys.argv[1] == "--stop":
        stop(Path(sys.argv[2]))
    else:
        print(start(Path(sys.argv[1]).absolute())["SLURM_CONF"])
