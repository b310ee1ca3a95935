"""Tests of `RunConfig(compile_cache=...)`: a second process finds the programs of the first."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import jax, jax.monitoring, numpy as np, optax
import estimator_core as ec

events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rpartition("/")[2]))

def model_fn(features, mode):
    loss = ((features["x"] @ ec.get_variable("w", (3,))) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(0.1))

where = json.loads(sys.argv[1])
config = ec.RunConfig(tf_random_seed=1, **where)
ec.Estimator(model_fn, config=config).train(lambda: iter([{"x": np.ones((4, 3), np.float32)}]), steps=1)
found = {name: events.count(f"cache_{name}") for name in ("hits", "misses")}
print(json.dumps(found | {"directory": jax.config.jax_compilation_cache_dir}))
"""


@pytest.fixture
def run(tmp_path):
    """Returns `run(config arguments, environment)`, which runs the program in a separate process."""

    def start(arguments, **environment):
        own = {
            "XDG_CACHE_HOME": str(tmp_path / "user"),
            "TMPDIR": str(tmp_path),
            "JAX_PLATFORMS": "cpu",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            **environment,
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION_CACHE")}
        command = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
        done = subprocess.run(command, env={**inherited, **own}, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    return start


def test_the_second_process_compiles_nothing_anew(run, tmp_path):
    first, second = run({}), run({})
    assert first["hits"] == 0 < first["misses"]
    assert (second["hits"], second["misses"]) == (first["misses"], 0)
    assert second["directory"].startswith(str(tmp_path / "user" / "estimator" / "compiled"))
    assert Path(second["directory"]).stat().st_mode & 0o077 == 0  # other users could write code there


@pytest.mark.slow
def test_a_directory_of_ones_own_is_used(run, tmp_path):
    wanted = str(tmp_path / "own")
    assert run({"compile_cache": wanted})["directory"] == wanted
    assert run({"compile_cache": wanted})["misses"] == 0


def test_none_keeps_nothing(run, tmp_path):
    assert run({"compile_cache": None}) == {"hits": 0, "misses": 0, "directory": None}
    assert not (tmp_path / "user").exists()


@pytest.mark.slow
def test_the_cache_that_jax_was_given_stays(run, tmp_path):
    given = str(tmp_path / "given")
    assert run({}, JAX_COMPILATION_CACHE_DIR=given)["directory"] == given
    assert not (tmp_path / "user").exists()


def test_a_directory_that_cannot_be_made_is_no_reason_to_stop(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert run({"compile_cache": str(tmp_path / "file" / "cache")})["directory"] is None
