"""Writes the recorded TFRecord files: `python write.py` in an environment with tensorflow and scikit-learn."""

import hashlib
from pathlib import Path

import tensorflow as tf
from sklearn.datasets import load_wine

FOLDER = Path(__file__).parent


def main() -> None:
    wine = load_wine()

    def example(row: int) -> bytes:
        strings = [b"note %d" % number for number in range(row % 3)]
        odd = [row * 10**12 * (-1) ** number * 2 for number in range(row % 2)]
        feature = {
            "row": tf.train.Feature(int64_list=tf.train.Int64List(value=[row])),
            "measures": tf.train.Feature(float_list=tf.train.FloatList(value=wine.data[row])),
            "name": tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[wine.target_names[wine.target[row]].encode()])
            ),
            "notes": tf.train.Feature(bytes_list=tf.train.BytesList(value=strings)),
            "odd": tf.train.Feature(int64_list=tf.train.Int64List(value=odd)),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    records = [example(row) for row in range(len(wine.target))]
    for name, compression in (("wine.tfrecord", ""), ("wine.tfrecord.gz", "GZIP"), ("wine.zlib.tfrecord", "ZLIB")):
        with tf.io.TFRecordWriter(str(FOLDER / name), compression) as writer:
            for record in records:
                writer.write(record)
    digest = hashlib.sha256((FOLDER / "wine.tfrecord").read_bytes()).hexdigest()
    (FOLDER / "wine.sha256").write_text(digest + "\n")


if __name__ == "__main__":
    main()
