"""Points, first centres and the cases of k-means; shared by the recorder and the test, so it imports numpy alone."""

import itertools

import numpy as np

POINTS, CLUSTERS, BATCH = 200, 4, 40


def points():
    """Two features: [points, 2] and [points]; four groups that overlap a little, in directions that differ too."""
    rng = np.random.default_rng(11)
    middles = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [-3.0, 2.0, 2.0], [1.0, -2.0, 4.0]])
    rows = middles[rng.integers(0, CLUSTERS, POINTS)] + rng.normal(0.0, 1.2, (POINTS, 3))
    return {"xy": rows[:, :2].astype(np.float32), "z": rows[:, 2:].astype(np.float32)}


def batches(case):
    """Those of the first steps, which then come again."""
    if not case["arguments"]["use_mini_batch"]:
        return [points()]
    begins = range(0, POINTS, BATCH)
    return [{name: values[begin : begin + BATCH] for name, values in points().items()} for begin in begins]


def first_centres():
    """float32[4, 3]: apart, so that no cluster is ever empty."""
    return np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [-2.0, 1.0, 1.0], [0.0, -1.0, 2.0]], np.float32)


def cases():
    """By name: the arguments of KMeans, and steps. A full batch is all points."""
    found = {}
    for metric, steps in itertools.product(("squared_euclidean", "cosine"), (1, 3, 12)):
        found[f"{metric} full batch, {steps} steps"] = case(metric, steps, use_mini_batch=False)
        found[f"{metric} mini-batch, {steps} steps"] = case(metric, steps, use_mini_batch=True)
    for metric in ("squared_euclidean", "cosine"):
        # The fifth step replaces the centres. Whether it reads them before or after is not determined.
        found[f"{metric} mini-batch, 5 steps, 4 an iteration"] = case(
            metric, 5, use_mini_batch=True, mini_batch_steps_per_iteration=4
        )
    return found


def case(metric, steps, **arguments):
    return {"steps": steps, "arguments": {"distance_metric": metric, **arguments}}
