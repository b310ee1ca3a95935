"""Tests of the manifests against the schemas of Kubernetes and the models of JobSet, in session `kubernetes`."""

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.launchers.tests.test_kubernetes_plan import objects
from plugins.launchers.tests.test_pages import PAGES, command

validate = pytest.importorskip("kubernetes_validate", reason="session `kubernetes` has kubernetes-validate")
models = pytest.importorskip("kubeflow_trainer_api.models", reason="session `kubernetes` has kubeflow-trainer-api")

VERSIONS = ("1.30", "1.33", "1.36")
EVERYTHING: dict[str, Any] = {
    "evaluator": True,
    "model_dir": "gs://b/run",
    "max_restarts": 3,
    "time_limit_secs": 60,
    "devices": 4,
    "hosts": 2,
    "options": {
        "cards": "nvidia.com/gpu",
        "cpu": "8",
        "memory": "64Gi",
        "namespace": "ml",
        "node-selector": "a=b",
        "service-account": "me",
        "tensorboard-image": "tb",
        "volume": "disk:/shared",
    },
}
SMALLEST: dict[str, Any] = {}


def refused(one: dict[str, Any], version: str) -> str:
    try:
        validate.validate(one, version, strict=True)
    except validate.ValidationError as error:
        return str(error)
    return ""


def as_job(job_set: dict[str, Any]) -> dict[str, Any]:
    """Returns the Job that the controller makes from a JobSet."""
    spec = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": copy.deepcopy(spec)}


def lost(given: Any, back: Any, path: str = "") -> list[str]:
    """Returns the fields that a model does not return because it does not know them."""
    if isinstance(given, dict):
        unknown = [f"{path}/{key}" for key in given if not isinstance(back, dict) or key not in back]
        known = [key for key in given if isinstance(back, dict) and key in back]
        return unknown + [one for key in known for one in lost(given[key], back[key], f"{path}/{key}")]
    if isinstance(given, list):
        pairs = zip(given, back, strict=True)
        return [one for place, pair in enumerate(pairs) for one in lost(*pair, f"{path}[{place}]")]
    return []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fields", [EVERYTHING, SMALLEST], ids=["everything", "smallest"])
def test_kubernetes_knows_every_field(fields: dict[str, Any], version: str):
    for one in objects(**fields):
        assert refused(as_job(one) if one["kind"] == "JobSet" else one, version) == ""


@pytest.mark.parametrize("fields", [EVERYTHING, SMALLEST], ids=["everything", "smallest"])
def test_job_set_knows_every_field(fields: dict[str, Any]):
    (made,) = (one for one in objects(**fields) if one["kind"] == "JobSet")
    assert lost(made, models.JobsetV1alpha2JobSet.from_dict(made).to_dict()) == []


@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
@pytest.mark.parametrize("words", ["--max-restarts 3", "--image"])
def test_the_manifests_of_the_page_are_valid(tmp_path: Path, words: str):
    asked = command("kubernetes.md", f"estimator launch --on kubernetes --processes 2 {words}")
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    made = list(yaml.safe_load_all(done.stdout.partition("# ---- Containerfile")[0]))
    assert "JobSet" in [one["kind"] for one in made]
    for one in made:
        for version in VERSIONS:
            assert refused(as_job(one) if one["kind"] == "JobSet" else one, version) == ""
        if one["kind"] == "JobSet":
            assert lost(one, models.JobsetV1alpha2JobSet.from_dict(one).to_dict()) == []


def test_a_wrong_field_is_found():
    """The checks above can fail."""
    (made,) = (one for one in objects() if one["kind"] == "JobSet")
    wrong = as_job(made)
    wrong["spec"]["paralelism"] = 2
    assert "paralelism" in refused(wrong, VERSIONS[0])
    made["spec"]["replicatedJobs"][0]["template"]["spec"]["paralelism"] = 2
    assert lost(made, models.JobsetV1alpha2JobSet.from_dict(made).to_dict()) == [
        "/spec/replicatedJobs[0]/template/spec/paralelism"
    ]
