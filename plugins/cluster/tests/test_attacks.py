"""Tests of a stranger at the port of jax's own service: its forged, copied or overwritten values are ignored."""

from __future__ import annotations

import os
import sys

from estimator_cluster.roll_call import BIND_ADDRESS
from estimator_core.testing import run_processes

#: The stranger has no secret. It poses as process 0, because the service answers only clients with a process index.
#: It first writes the keys that others wait for, and copies sealed values to other keys. Then it overwrites all keys.
STRANGER = """
import json, os, sys
from jax._src.lib import _jax

client = _jax.get_distributed_runtime_client(os.environ["JAX_COORDINATOR_ADDRESS"], 0, use_compression=True)
client.connect()
for key, value in client.key_value_dir_get("est/"):
    if "/before/" in key:
        client.key_value_set(key.replace("/before/", "/after/"), value)
lost = json.dumps({"by": 1, "kind": "lost", "index": 1, "reason": "a lie"})
client.key_value_set("est/run/0/state/1/forged", ":" + lost)
for index in ("1", "all"):
    client.key_value_set(f"est/run/0/topics/after/0/{index}/forged", ':["stop", "stop"]')
print("forged", flush=True)
sys.stdin.readline()
for key, value in client.key_value_dir_get("est/"):
    client.key_value_set(key, ":" + value.partition(":")[2], allow_overwrite=True)
print("overwritten", flush=True)
sys.stdin.readline()
os._exit(0)
"""
#: Two processes agree before and after the forgeries. Process 1 writes its last value before the stranger overwrites.
PROGRAM = """
import os, subprocess, sys, time
from estimator_cluster import connect
from estimator_core import Processes
from estimator_core.errors import ProcessLostError

def say(*words):
    print(*words, flush=True)

index = int(os.environ["JAX_PROCESS_ID"])
processes = Processes(os.environ["JAX_COORDINATOR_ADDRESS"], 2, index, "the test")
here = connect(processes, {"heartbeat_secs": 30, "start_secs": 60, "grace_secs": 3})
here.agree("before", f"of {index}", 30.0)
if index == 0:
    env = {name: value for name, value in os.environ.items() if name != "ESTIMATOR_RUN_SECRET"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    stranger = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=env, text=True, **pipes)
    say("the stranger has", stranger.stdout.readline().strip())
here.barrier("attacked", 60.0)
time.sleep(1.5)  # each looks for news once a second
say("agreed", here.agree("after", f"of {index}", 30.0), here.lost())
if index == 0:
    time.sleep(0.3)
    print(file=stranger.stdin, flush=True)
    say("the stranger has", stranger.stdout.readline().strip())
try:
    say("agreed", here.agree("last", f"of {index}", 1.5 + 10.0 * index))
except ProcessLostError as error:
    say("refused:", error)
time.sleep(1.5 * (1 - index))  # process 0 holds the service
os._exit(0)
"""


def test_what_a_stranger_writes_into_the_service_of_jax_is_named_and_never_believed() -> None:
    environ = {**os.environ, "JAX_PLATFORMS": "cpu", "ESTIMATOR_RUN_SECRET": "of this run"}
    environ.pop(BIND_ADDRESS, None)
    done = run_processes([sys.executable, "-c", PROGRAM, STRANGER], 2, env=environ, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[0] the stranger has forged" in done.stdout, done.stdout
    assert "[0] the stranger has overwritten" in done.stdout, done.stdout
    lines = done.stdout.splitlines()
    for process in (0, 1):
        assert f"[{process}] agreed ['of 0', 'of 1'] None" in lines, done.stdout
        named = [line for line in lines if line.startswith(f"[{process}] The value at est/run/0/")]
        assert any("/state/1/forged does not carry the seal of this run and is ignored" in line for line in named), (
            lines
        )
        assert any(line.startswith(f"[{process}] refused: Process 1 of 2 ") for line in lines), done.stdout
    assert any("/topics/last/0/1/" in line for line in lines), done.stdout
    assert "a lie" not in done.stdout
    assert "stop" not in done.stdout
