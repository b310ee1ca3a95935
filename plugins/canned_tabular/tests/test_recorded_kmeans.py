"""k-means from given centres has the centres, scores, distances and assignments of tf.estimator, within 1e-4."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests import kmeans_cases, table_recordings
from plugins.canned_tabular.tests.given_weights import QUIET

CASES = kmeans_cases.cases()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if number % 3 else ()) for number, name in enumerate(CASES)]
)
def test_as_recorded(tmp_path, name):
    recorded, case = table_recordings.load("kmeans")[name], CASES[name]
    points, batches = kmeans_cases.points(), kmeans_cases.batches(case)
    kmeans = tab.KMeans(
        kmeans_cases.CLUSTERS,
        initial_clusters=kmeans_cases.first_centres(),
        config=ec.RunConfig(model_dir=str(tmp_path), **QUIET),
        **case["arguments"],
    )
    kmeans.train(lambda: (batches * case["steps"])[: case["steps"]])
    centres = np.asarray(kmeans.cluster_centers())
    np.testing.assert_allclose(centres, recorded["centres"], rtol=1e-4, atol=1e-4)
    assert kmeans.score(lambda: [points]) == pytest.approx(recorded["score"], rel=1e-4)
    distances = np.array(list(kmeans.transform(lambda: [points])))
    np.testing.assert_allclose(distances[:20], recorded["distances"], rtol=1e-4, atol=1e-4)
    assert [int(index) for index in kmeans.predict_cluster_index(lambda: [points])] == recorded["assignments"]


def test_no_cluster_of_the_recordings_is_empty():
    """An empty cluster is an intended difference: its centre stays."""
    for recorded in table_recordings.load("kmeans").values():
        assert set(recorded["assignments"]) == set(range(kmeans_cases.CLUSTERS))
