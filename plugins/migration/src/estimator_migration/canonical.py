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

#: Private modules of tensorflow_estimator. Their names are those of tf.estimator.
_MODULES = (
    "training|estimator|estimator_lib|extenders|model_fn|run_config|early_stopping|exporter|keras|keras_lib|util|"
    "mode_keys|gc|tf_estimator_checkpoint"
)
#: Names of private modules that are public in tf.estimator.experimental.
_EXPERIMENTAL = (
    r"InMemoryEvaluatorHook|make_\w+_hook|stop_if_\w+_hook|RNNClassifier|RNNEstimator|LinearSDCA|call_logit_fn|"
    "dnn_logit_fn_builder|linear_logit_fn_builder|build_raw_supervised_input_receiver_fn"
)

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
    (r"^tf\.estimator\.canned\.timeseries\b", "tf.contrib.timeseries"),
    (r"^tf\.estimator\.(canned|head|hooks)(\.[a-z]\w*)?(?=\.|$)", "tf.estimator"),
    (r"^tf\.estimator\.(inputs|export)\.(\w+_io|inputs|export|export_lib|export_output)(?=\.|$)", r"tf.estimator.\1"),
    (rf"^tf\.estimator\.({_MODULES})(?=\.|$)", "tf.estimator"),
    (r"^tf\.estimator\.((export\.)?\w+)(V2|_v2)\b", r"tf.estimator.\1"),
    (rf"^tf\.estimator\.(export\.)?({_EXPERIMENTAL})\b", r"tf.estimator.experimental.\2"),
    (r"^tf\.estimator\.KMeansClustering\b", "tf.estimator.experimental.KMeans"),
    (r"^tf\.estimator\.model_to_estimator\b", "tf.keras.estimator.model_to_estimator"),
    (r"^tf\.estimator\.tpu\.(_?tpu_\w+|util)(?=\.|$)", "tf.contrib.tpu"),
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
