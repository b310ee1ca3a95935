"""tf.data in a separate process, for `inputs_files.py`: one epoch for each line read from stdin.

python _tf_data.py csv|tfrecord folder=... shuffle=0|1 rows=... batch=...
"""

import sys

import tensorflow as tf


def make(kind: str, folder: str, shuffle: bool, batch: int) -> tf.data.Dataset:
    """Returns the dataset with the defaults of tf.data."""
    if kind == "csv":
        pattern = f"{folder}/*.csv"
        return tf.data.experimental.make_csv_dataset(pattern, batch, label_name="label", num_epochs=1, shuffle=shuffle)
    spec = {f"f{i}": tf.io.FixedLenFeature((), tf.float32) for i in range(8)}
    spec.update({f"i{i}": tf.io.FixedLenFeature((), tf.int64) for i in range(4)})
    spec.update({f"s{i}": tf.io.FixedLenFeature((), tf.string) for i in range(2)})
    spec["label"] = tf.io.FixedLenFeature((), tf.int64)
    return tf.data.experimental.make_batched_features_dataset(
        f"{folder}/*.tfrecord", batch, spec, label_key="label", num_epochs=1, shuffle=shuffle
    )


def main() -> None:
    kind = sys.argv[1]
    numbers = dict(argument.split("=", 1) for argument in sys.argv[2:])
    for _ in sys.stdin:
        read = 0
        for _, labels in make(kind, numbers["folder"], numbers["shuffle"] == "1", int(numbers["batch"])):
            read += int(labels.shape[0])
        assert read == int(numbers["rows"]), read
        print("done", flush=True)


if __name__ == "__main__":
    main()
