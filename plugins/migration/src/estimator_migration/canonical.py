"""Reduces the many spellings that TensorFlow has for a name to one."""

from __future__ import annotations

import re

#: The packages whose names are checked.
ROOTS = frozenset(
    {
        "horovod",
        "tensorflow",
        "tensorflow_addons",
        "tensorflow_data_validation",
        "tensorflow_datasets",
        "tensorflow_decision_forests",
        "tensorflow_estimator",
        "tensorflow_hub",
        "tensorflow_io",
        "tensorflow_lattice",
        "tensorflow_model_analysis",
        "tensorflow_probability",
        "tensorflow_ranking",
        "tensorflow_recommenders",
        "tensorflow_text",
        "tensorflow_transform",
        "tf_keras",
        "tf_metrics",
        "tf_slim",
    }
)

#: The packages of tensorflow_estimator whose names belong to tf.estimator itself.
_PRIVATE = ("canned", "head", "hooks")


def _house(found: re.Match[str]) -> str:
    """Returns the public package of a name in a private module: `head.multi_class_head.MultiClassHead`."""
    return "tf.estimator." if found[1] in _PRIVATE else f"tf.estimator.{found[1]}."


# The replacements are applied in this order, each at most once.
_SPELLINGS = (
    (r"^tensorflow_estimator(\.python)?(\.estimator)?\b", "tf.estimator"),
    (r"^tensorflow(_core)?\b", "tf"),
    (r"^tf\.compat\.v[12]\b", "tf"),
    (r"^tf\.python\.estimator\b", "tf.estimator"),
    (r"^tf\.python\.(estimator|feature_column|summary|data|training)\.\w+\.(?=[A-Z])", r"tf.\1."),
    (r"^tf\.python\.(keras|data|training|summary|feature_column|platform)\b", r"tf.\1"),
    (r"^tf\.training\b", "tf.train"),
    (r"^tf_slim\b", "tf.contrib.slim"),
    (r"^tf_keras\b", "tf.keras"),
    (
        r"^tf\.contrib\.(\w+)\.python\.(\1|training|framework|metrics|layers|ops)\b(\.(estimators|ops)\b)?",
        r"tf.contrib.\1",
    ),
    (r"^tf\.contrib\.tpu\.(tpu_\w+|async_checkpoint|bfloat16)\b", "tf.contrib.tpu"),
    (r"^tf\.estimator\.(canned|head|hooks|inputs|export)\.(\w+\.)(?=\w+$)", _house),
    (
        r"^tf\.estimator\.(training|estimator|model_fn|run_config|early_stopping|exporter|keras|util|mode_keys|"
        r"gc|tf_estimator_checkpoint)\.(?=\w)",
        "tf.estimator.",
    ),
    (r"^tf\.estimator\.(\w+)V2\b", r"tf.estimator.\1"),
    (r"^tf\.estimator\.tpu\.", "tf.contrib.tpu."),
    (r"^tf\.python_io\.", "tf.io."),
    (r"^tf\.io\.gfile\b", "tf.gfile"),
    (r"^tf\.contrib\.data\.", "tf.data.experimental."),
    (r"^tf\.platform\.(flags|app|gfile)\b", r"tf.\1"),
    (r"^tf\.app\.flags\b", "tf.flags"),
    (
        r"^tf\.math\.(reduce_\w+|abs|add|subtract|multiply|divide|argmax|argmin|equal|exp|log|sqrt|square|pow|maximum|"
        r"minimum|sigmoid|tanh|less|greater|less_equal|greater_equal|logical_and|logical_not|logical_or|sign|floor|"
        r"round|cumsum|not_equal|add_n)$",
        r"tf.\1",
    ),
    (r"^tf\.linalg\.matmul$", "tf.matmul"),
    (r"^tf\.nn\.(tanh|sigmoid)$", r"tf.\1"),
)


def canonical(name: str) -> str:
    """Returns the spelling of a name in the table.

    Args:
        name: a dotted name, as it results from the imports of a program.

    Example:
        >>> canonical("tensorflow.compat.v1.estimator.inputs.numpy_input_fn"), canonical("tf_slim.conv2d")
        ('tf.estimator.inputs.numpy_input_fn', 'tf.contrib.slim.conv2d')
    """
    for pattern, replacement in _SPELLINGS:
        name = re.sub(pattern, replacement, name, count=1)
    return name
