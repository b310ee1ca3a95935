"""Tests of Kubernetes manifests: their content, their pods as processes of this machine, and the calls of kubectl."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_core.errors import ArgumentError
from estimator_launchers import JobSpec, KubernetesLauncher, LaunchError
from estimator_launchers.launcher_suite import LauncherSuite
from plugins.launchers.tests.fake_cluster import expanded

yaml = pytest.importorskip("yaml", reason="PyYAML writes the manifests: the extra `kubernetes`")

#: A kubectl that records its arguments, and answers from files.
KUBECTL = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
with (folder / "told.jsonl").open("a") as file:
    file.write(json.dumps([sys.argv[1:], sys.stdin.read() if "-" in sys.argv else ""]) + "\\n")
answer = folder / f"{{sys.argv[1]}}-{{sys.argv[2]}}.json"
print(answer.read_text() if answer.exists() else "")
"""

FAILED = {"type": "Failed", "status": "True"}


class TestKubernetesPlans(LauncherSuite):
    reachable = False
    needs = {"image": "registry.example/train:1"}  # noqa: RUF012 - read only

    def make(self):
        return KubernetesLauncher()


def job(**fields: Any) -> JobSpec:
    return JobSpec(**{"command": ("python", "train.py"), "processes": 2, "image": "registry.example/train:1", **fields})


def objects(**fields: Any) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(KubernetesLauncher().plan(job(**fields)).files[0].text))


def test_what_is_made():
    kinds = [(one["kind"], one["metadata"]["name"]) for one in objects(evaluator=True, model_dir="gs://b/run")]
    assert kinds == [
        ("Service", "train"),
        ("JobSet", "train"),
        ("NetworkPolicy", "train"),
        ("Job", "train-evaluator"),
        ("Deployment", "train-tensorboard"),
        ("Service", "train-tensorboard"),
    ]
    assert [one["kind"] for one in objects()] == ["Service", "JobSet", "NetworkPolicy"]
    assert [one["kind"] for one in objects(options={"network-policy": "no"})] == ["Service", "JobSet"]


def test_only_the_pods_that_train_reach_each_other():
    _, made, policy, evaluator, *_ = objects(evaluator=True, model_dir="gs://b/run")
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    assert chosen.items() <= pods["metadata"]["labels"].items()
    assert not chosen.items() <= evaluator["spec"]["template"]["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": chosen}}]}]


def test_restarts_grace_and_cards():
    _, made, *_ = objects(
        max_restarts=5,
        grace_secs=90,
        time_limit_secs=3600,
        devices=4,
        hosts=2,
        env={"A": "b"},
        options={"cards": "nvidia.com/gpu", "memory": "64Gi", "node-selector": "a/b=c,d=e", "service-account": "me"},
    )
    assert made["spec"]["failurePolicy"]["maxRestarts"] == 5
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (pods["completions"], pods["backoffLimit"], pods["activeDeadlineSeconds"]) == (2, 0, 3600)
    assert 75 in pods["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"]
    spec = pods["template"]["spec"]
    assert (spec["terminationGracePeriodSeconds"], spec["serviceAccountName"]) == (90, "me")
    assert spec["nodeSelector"] == {"a/b": "c", "d": "e"}
    assert "podAntiAffinity" in spec["affinity"]
    (container,) = spec["containers"]
    assert container["resources"]["limits"] == {"memory": "64Gi", "nvidia.com/gpu": "4"}
    assert {"name": "A", "value": "b"} in container["env"]
    assert "XLA_FLAGS" not in json.dumps(made)


@pytest.mark.parametrize(("given", "chosen"), [("", None), ("a=b,", {"a": "b"}), ("a=", {"a": ""})])
def test_node_selectors_that_a_script_may_leave_empty(given, chosen):
    _, made, *_ = objects(options={"cards": "nvidia.com/gpu", "node-selector": given})
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec.get("nodeSelector") == chosen


def test_a_volume_that_pods_share():
    _, made, *_ = objects(options={"volume": "disk:/shared/runs"})
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["volumes"] == [{"name": "shared", "persistentVolumeClaim": {"claimName": "disk"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "shared", "mountPath": "/shared/runs"}]


@pytest.mark.parametrize("role", [False, True])
def test_words_and_variables_reach_a_pod_unchanged(role: bool):
    words = ("sh", "-c", "echo $$ $(A) $HOME $", "$$(A)")
    (made,) = [
        one for one in objects(command=words, env={"A": "b", "C": "$(A) $$"}, evaluator=role) if "JobSet" in one["kind"]
    ]
    (container,) = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    env = {"A": "b"}
    assert tuple(expanded(word, env) for word in container["command"])[-4:] == words
    (value,) = [one["value"] for one in container["env"] if one["name"] == "C"]
    assert expanded(value, env) == "$(A) $$"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"image": ""}, "Name one with --image"),
        ({"processes": 4, "hosts": 2}, "each pod is one process"),
        ({"options": {"partition": "gpu"}}, "has no option partition. Options: cards: "),
        ({"options": {"network-policy": "maybe"}}, "The option network-policy is yes or no, given: 'maybe'"),
        ({"options": {"node-selector": "a=b,gpu"}}, "The option node-selector is LABEL=VALUE,.*, given: 'a=b,gpu'"),
        ({"options": {"node-selector": "a=b, c=d"}}, "The option node-selector is LABEL=VALUE,.*, given: 'a=b, c=d'"),
        ({"name": "7-days"}, "begins with a letter and does not end with a hyphen, given: '7-days'"),
        ({"name": "week-"}, "begins with a letter and does not end with a hyphen, given: 'week-'"),
        ({"name": "a" * 45}, "has a name of at most 44 characters on Kubernetes"),
        ({"name": "größe"}, "lower-case letters, digits and hyphens, given: 'größe'"),
        ({"env": {"A B": "1"}}, "The name of a variable in env .*, given: 'A B'"),
        ({"env": {"1A": "1"}}, "and not begin with a digit, given: '1A'"),
        ({"options": {"memory": "1Gi\n"}}, r"The option memory should be one line .*, given: '1Gi\\n'"),
        ({"options": {"volume": "disk"}}, "The option volume is CLAIM:/PATH, given: 'disk'"),
    ],
)
def test_refused(fields: dict[str, Any], says: str):
    with pytest.raises(ArgumentError, match=says):
        objects(**fields)


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubectl"
    path.write_text(KUBECTL.format(python=sys.executable, folder=str(tmp_path)))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_the_secret_goes_to_kubectl_by_standard_input(kubectl: Path):
    launcher = KubernetesLauncher()
    plan = launcher.plan(job(options={"namespace": "ml"}))
    assert launcher.submit(plan) == "ml/train"
    *asked, first, second = map(json.loads, (kubectl / "told.jsonl").read_text().splitlines())
    assert [words[:3] for words, _ in asked] == [["get", "jobset", "train"], ["get", "job", "train-evaluator"]]
    made = json.loads(first[1])
    assert (made["kind"], made["metadata"]["name"], len(made["stringData"]["secret"])) == ("Secret", "train-run", 64)
    assert second == [["apply", "-f", "-"], plan.files[0].text]
    assert made["stringData"]["secret"] not in json.dumps([first[0], second]) + plan.text()


def test_a_job_of_the_name_is_replaced_when_it_has_ended_and_else_left_alone(kubectl: Path):
    """The cluster does not change a failed JobSet, so a second submission would not start anything."""
    launcher = KubernetesLauncher()
    (kubectl / "get-jobset.json").write_text(json.dumps({"spec": {}, "status": {"conditions": [FAILED]}}))
    launcher.submit(launcher.plan(job()))
    told = [json.loads(line)[0] for line in (kubectl / "told.jsonl").read_text().splitlines()]
    assert [words[:2] for words in told[2:]] == [
        ["delete", "jobset"],
        ["delete", "job"],
        ["apply", "-f"],
        ["apply", "-f"],
    ]
    (kubectl / "get-jobset.json").write_text(json.dumps({"spec": {}, "status": {}}))
    with pytest.raises(LaunchError, match=r"The job train has not ended\. Choose another --name"):
        launcher.submit(launcher.plan(job()))


@pytest.mark.parametrize(
    ("conditions", "phase"),
    [
        ([], "running"),
        ([{"type": "Complete", "status": "True"}], "succeeded"),
        ([{**FAILED, "reason": "BackoffLimitExceeded"}], "failed"),
    ],
)
def test_a_job_ends_with_its_evaluator(kubectl: Path, conditions: list[dict[str, str]], phase: str):
    done = {"spec": {}, "status": {"conditions": [{"type": "Completed", "status": "True"}]}}
    (kubectl / "get-jobset.json").write_text(json.dumps(done))
    (kubectl / "get-job.json").write_text(json.dumps({"spec": {}, "status": {"conditions": conditions}}))
    found = KubernetesLauncher().status("train")
    assert (found.phase, "the evaluator" in found.why) == (phase, phase == "failed")


@pytest.mark.parametrize(
    ("status", "phase", "exit_status"),
    [
        ({"conditions": [{"type": "Completed", "status": "True"}], "restarts": 2}, "succeeded", 0),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts"}]}, "resumable", 75),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "FailJobSetFailurePolicyAction"}]},
            "failed",
            1,
        ),
        ({"replicatedJobsStatus": [{"name": "trainers", "active": 1}]}, "running", 1),
        ({}, "pending", 1),
    ],
)
def test_how_a_job_set_stands(kubectl: Path, status: dict[str, Any], phase: str, exit_status: int):
    (kubectl / "get-jobset.json").write_text(json.dumps({"spec": {}, "status": status}))
    found = KubernetesLauncher().status("ml/train")
    assert (found.phase, found.exit_status, found.restarts) == (phase, exit_status, status.get("restarts", 0))
    told = json.loads((kubectl / "told.jsonl").read_text().splitlines()[0])[0]
    assert told == ["get", "jobset", "train", "--namespace=ml", "--ignore-not-found", "-o", "json"]


def test_a_stop_suspends_and_the_job_can_go_on(kubectl: Path):
    KubernetesLauncher().stop("ml/train", 5)
    told = json.loads((kubectl / "told.jsonl").read_text().splitlines()[0])[0]
    assert told[:3] == ["patch", "jobset", "train"]
    (kubectl / "get-jobset.json").write_text(json.dumps({"spec": {"suspend": True}}))
    assert KubernetesLauncher().status("train").phase == "resumable"


def test_logs_of_a_pod_end_with_the_job(kubectl: Path):
    spec = {"replicatedJobs": [{"template": {"spec": {"completions": 2}}}]}
    done = {"spec": spec, "status": {"conditions": [{"type": "Completed", "status": "True"}]}}
    (kubectl / "get-jobset.json").write_text(json.dumps(done))
    pod = {"metadata": {"name": "train-trainers-0-1-x", "creationTimestamp": "1"}, "status": {"phase": "Succeeded"}}
    (kubectl / "get-pods.json").write_text(json.dumps({"items": [pod]}))
    (kubectl / "logs---follow.json").write_text("hello")
    assert list(KubernetesLauncher().logs("train", 1)) == ["hello"]


def test_without_kubectl_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="kubectl is not installed here"):
        KubernetesLauncher().status("train")


def test_a_job_that_the_cluster_does_not_have_is_an_error(kubectl: Path):
    with pytest.raises(LaunchError, match="The cluster has no JobSet ml/train"):
        KubernetesLauncher().status("ml/train")
