"""The backend keeps its contract, and decides on which devices a run computes."""

import os
import subprocess
import sys

import estimator_core as ec
from estimator_core.testing.backend_suite import BackendSuite

RUN = """
import sys
import jax
import optax
import estimator_core as ec
from estimator_core.testing.tiny import tiny_input_fn

def model_fn(features, labels, mode):
    loss = ((features["x"][:, 0] * ec.get_variable("slope", ()) - labels) ** 2).mean()
    ec.summary.scalar("devices", jax.numpy.float32(jax.sharding.get_abstract_mesh().size))
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

class Look(ec.Hook):
    def after_step(self, run, step, out):
        print("devices:", int(out["devices"]))

config = ec.RunConfig(model_dir=sys.argv[1], backend=sys.argv[2], mesh={"data": -1})
ec.Estimator(model_fn, config=config).train(tiny_input_fn(), steps=1, hooks=[Look()])
"""


class TestAcmeBackendBackend(BackendSuite):
    def make(self):
        return ec.Plugins().get("backend", "acme_backend")()


def devices(model_dir, backend):
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "ACME_BACKEND_DEVICES": "2",
    }
    command = [sys.executable, "-c", RUN, str(model_dir), backend]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_takes_part_in_a_run(tmp_path):
    assert devices(tmp_path / "cpu", "cpu") == "devices: 4"
    assert devices(tmp_path / "own", "acme_backend") == "devices: 2"
