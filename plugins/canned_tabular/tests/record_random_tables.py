"""Records the random models: weights and metrics after 40 steps of TensorFlow's estimators."""

import pathlib
import sys
import tempfile

import random_cases
import tf_tables
from tf_tables import tf


def optimizer(kind, rate, momentum=0.0, shrinkage=0.0):
    """A Keras optimizer of the kind canned estimators take."""
    legacy = tf.keras.optimizers.legacy
    return {
        "Momentum": lambda: legacy.SGD(rate, momentum=momentum),
        "Nesterov": lambda: legacy.SGD(rate, momentum=momentum, nesterov=True),
        "Ftrl": lambda: legacy.Ftrl(rate, l2_shrinkage_regularization_strength=shrinkage),
        "RMSProp": lambda: legacy.RMSprop(rate, momentum=momentum),
        "Adagrad": lambda: legacy.Adagrad(rate),
    }[kind]


def input_fn(seed, *, parsed, repeat):
    """Dense features, or those of any length as `tf.io.parse_example` makes them."""
    features, labels = random_cases.table(seed)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(random_cases.BATCH)

    def sparse(features, labels):
        found = dict(features, port=tf.expand_dims(features["port"], 1))
        for key, blank in (("words", ""), ("port", ""), ("code", -1)):
            given = tf.where(tf.not_equal(found[key], blank))
            shape = tf.shape(found[key], out_type=tf.int64)
            found[key] = tf.SparseTensor(given, tf.gather_nd(found[key], given), shape)
        return found, labels

    data = data.map(sparse) if parsed else data
    return data.repeat() if repeat else data


def run(name, case):
    seed = random_cases.seed_of(name)
    made = {key: random_cases.build(specs, tf_tables.FUNCTIONS) for key, specs in case["columns"].items()}
    keys = ("linear_optimizer", "dnn_optimizer") if "dnn_hidden_units" in case["options"] else ("optimizer",)
    made |= {key: optimizer(**case["optimizer"]) for key in keys}
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(model_dir=str(pathlib.Path(folder, "model")), tf_random_seed=1)
        estimator = getattr(tf.estimator, case["estimator"])(config=config, **case["options"], **made)
        setter = tf_tables.SetWeights()
        steps = random_cases.STEPS
        estimator.train(lambda: input_fn(seed, parsed=case["parsed"], repeat=True), steps=steps, hooks=[setter])
        return {
            "weights": {name: estimator.get_variable_value(name) for name in sorted(setter.names)},
            "metrics": estimator.evaluate(lambda: input_fn(seed, parsed=case["parsed"], repeat=False)),
        }


def main():
    made = {}
    for name, case in random_cases.cases().items():
        made[name] = run(name, case)
        print(name, made[name]["metrics"]["loss"], file=sys.stderr)
    tf_tables.write(__file__, made, "random_cases.py", "table_cases.py")


if __name__ == "__main__":
    main()
