"""Records k-means of tf.estimator: centres, the score of all points, and distances and assignments of each."""

import sys
import tempfile

import kmeans_cases
import tensorflow as tf
import tf_tables


class GivenBatches(tf.estimator.SessionRunHook):
    """Feeds the batch of each step: the initialisation of the centres draws from the input as often as it likes."""

    def __init__(self, batches):
        self.batches = batches
        self.given = {}
        self.step = 0

    def input_fn(self):
        self.given = {
            name: tf.compat.v1.placeholder_with_default(values, [None, values.shape[1]])
            for name, values in self.batches[0].items()
        }
        return self.given

    def before_run(self, context):
        batch = self.batches[self.step % len(self.batches)]
        self.step += 1
        return tf.estimator.SessionRunArgs([], {self.given[name]: values for name, values in batch.items()})


class CountsInOrder(tf.estimator.SessionRunHook):
    """Counts of points are read before they are added to, as the comments of clustering_ops say.

    Nothing in the graph says so: no two runs give the same numbers, and most take the points of a batch twice.
    """

    def __init__(self, mini_batch):
        self.counts = int(mini_batch)

    def begin(self):
        operations = tf.compat.v1.get_default_graph().get_operations()
        read, added = (
            [one for one in operations if one.type == kind and one.get_attr("dtype") == tf.int64]
            for kind in ("ResourceGather", "ResourceScatterAdd")
        )
        assert len(read) == len(added) == self.counts
        for one in added:
            one._add_control_inputs(read)


def run(case):
    feed = GivenBatches(kmeans_cases.batches(case))

    def input_fn():
        return tf.data.Dataset.from_tensors(kmeans_cases.points())

    with tempfile.TemporaryDirectory() as folder:
        estimator = tf.compat.v1.estimator.experimental.KMeans(
            kmeans_cases.CLUSTERS,
            model_dir=folder,
            initial_clusters=kmeans_cases.first_centres(),
            config=tf.estimator.RunConfig(tf_random_seed=1),
            **case["arguments"],
        )
        estimator.train(
            feed.input_fn, steps=case["steps"], hooks=[feed, CountsInOrder(case["arguments"]["use_mini_batch"])]
        )
        return {
            "centres": estimator.cluster_centers(),
            "score": estimator.score(input_fn),
            "distances": list(estimator.transform(input_fn))[:20],
            "assignments": list(estimator.predict_cluster_index(input_fn)),
        }


def main():
    made = {}
    for name, case in kmeans_cases.cases().items():
        made[name] = run(case)
        print(name, made[name]["score"], file=sys.stderr)
    tf_tables.write(__file__, made, "kmeans_cases.py")


if __name__ == "__main__":
    main()
