"""Records the recurrent estimators: weights, metrics and predictions after 50 steps."""

import pathlib
import sys
import tempfile

import numpy as np
import sequence_cases
import table_cases
import tf_tables
from tf_tables import tf


def sparse(rows):
    """Rows of different lengths as a SparseTensorValue."""
    places = [(row, step) for row, values in enumerate(rows) for step in range(len(values))]
    values = np.array([value for row in rows for value in row])
    kind = {"U": object, "f": np.float32, "i": np.int64}[values.dtype.kind]
    shape = (len(rows), sequence_cases.STEPS_OF_SEQUENCE)
    return tf.SparseTensor(places, values.astype(kind), shape)


def run(case):
    values = sequence_cases.table()

    def input_fn(repeat):
        features = {name: sparse(rows) for name, rows in values["sequences"].items()}
        features.update(values["features"])
        data = tf.data.Dataset.from_tensor_slices((features, values[case["labels"]]))
        # The valid steps of a batch are as many as the longest of its rows: one batch, one shape.
        data = data.batch(sequence_cases.ROWS)
        return data.repeat() if repeat else data

    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(model_dir=str(pathlib.Path(folder, "model")), tf_random_seed=1)
        make = getattr(tf.estimator.experimental, case["estimator"])
        estimator = make(config=config, **tf_tables.arguments_of(case, folder))
        setter = tf_tables.SetWeights()
        estimator.train(lambda: input_fn(True), steps=table_cases.STEPS, hooks=[setter])
        predictions = list(estimator.predict(lambda: input_fn(False)))
        return {
            "weights": {name: estimator.get_variable_value(name) for name in sorted(setter.names)},
            "metrics": estimator.evaluate(lambda: input_fn(False)),
            "predictions": {key: [row[key] for row in predictions[:8]] for key in predictions[0] if key[:4] != "all_"},
        }


def main():
    made = {}
    for name, case in sequence_cases.cases().items():
        made[name] = run(case)
        print(name, made[name]["metrics"]["loss"], file=sys.stderr)
    tf_tables.write(__file__, made, "table_cases.py", "sequence_cases.py")


if __name__ == "__main__":
    main()
