"""A small experiment in files: code, and its configuration."""

CODE = """
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    loss = jnp.mean((y - labels) ** 2)
    train_op = optax.inject_hyperparams(optax.sgd)(learning_rate=params.rate)
    metrics = {"error": ec.metrics.mean((y - labels) ** 2)}
    return ec.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def batches(batch_size, epochs=None):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    return ec.inputs.numpy_input_fn({"x": x}, 3 * x + 1, batch_size=batch_size, num_epochs=epochs, shuffle=False)


def refuses(rate):
    raise ValueError(f"rate must be below 1, given {rate}")
"""

TOML = """\
[model]
function = "line_code.py:model_fn"

[inputs.train]
call = "line_code.py:batches"
args = { batch_size = 8 }

[inputs.eval]
call = "line_code.py:batches"

[inputs.eval.args]
batch_size = 8
epochs = 1

[train]
max_steps = 20

[hparams]
rate = 0.3

[run_config]
tf_random_seed = 1
save_checkpoints_steps = 10
default_hooks = false
"""

YAML = """\
model:
  function: line_code.py:model_fn
inputs:
  train: {call: "line_code.py:batches", args: {batch_size: 8}}
  eval:
    call: line_code.py:batches
    args: {batch_size: 8, epochs: 1}
train:
  max_steps: 20
hparams:
  rate: 3e-1
run_config:
  tf_random_seed: 1
  save_checkpoints_steps: 10
  default_hooks: false
"""


def write_line(folder, toml=TOML):
    """Writes the code and its configuration, and returns the path of the configuration."""
    (folder / "line_code.py").write_text(CODE)
    path = folder / "line.toml"
    path.write_text(toml)
    return path
