"""Records what RunConfig makes of TF_CONFIG and of its arguments: properties, defaults, errors."""

import json
import os

from tf_recording import described, error_of, tf, write

PROPERTIES = (
    "task_type",
    "task_id",
    "global_id_in_cluster",
    "is_chief",
    "master",
    "evaluation_master",
    "num_ps_replicas",
    "num_worker_replicas",
    "model_dir",
    "service",
)
WHOLE = {"chief": ["h0:1"], "worker": ["h1:1", "h2:1"], "ps": ["h3:1", "h4:1"]}
MASTER = {"master": ["h0:1"], "worker": ["h1:1", "h2:1"], "ps": ["h3:1"]}
OTHERS = {"chief": ["h0:1"], "worker": ["h1:1"], "tester": ["h5:1", "h6:1"], "ps": ["h3:1"]}


def task(kind, index, **more):
    return {"task": {"type": kind, "index": index}, **more}


ENVIRONMENTS = {
    "empty": {},
    "chief": task("chief", 0, cluster=WHOLE),
    "worker_0": task("worker", 0, cluster=WHOLE),
    "worker_1": task("worker", 1, cluster=WHOLE),
    "ps_0": task("ps", 0, cluster=WHOLE),
    "ps_1": task("ps", 1, cluster=WHOLE),
    "evaluator": task("evaluator", 0, cluster=WHOLE),
    "evaluator_1": task("evaluator", 1, cluster=WHOLE),
    "worker_5": task("worker", 5, cluster=WHOLE),
    "worker_negative": task("worker", -1, cluster=WHOLE),
    "index_as_text": task("worker", "1", cluster=WHOLE),
    "index_not_a_number": task("worker", "one", cluster=WHOLE),
    "unknown_type": task("gardener", 0, cluster=WHOLE),
    "no_type": {"cluster": WHOLE, "task": {"index": 0}},
    "no_index": {"cluster": WHOLE, "task": {"type": "worker"}},
    "no_task": {"cluster": WHOLE},
    "no_chief": task("worker", 0, cluster={"worker": ["h1:1"], "ps": ["h3:1"]}),
    "two_chiefs": task("chief", 0, cluster={"chief": ["h0:1", "h9:1"], "worker": ["h1:1"]}),
    "chief_only": task("chief", 0, cluster={"chief": ["h0:1"]}),
    "chief_and_ps": task("chief", 0, cluster={"chief": ["h0:1"], "ps": ["h3:1"]}),
    "chief_and_worker": task("chief", 0, cluster={"chief": ["h0:1"], "worker": ["h1:1"]}),
    "other_job": task("tester", 1, cluster=OTHERS),
    "other_job_ps": task("ps", 0, cluster=OTHERS),
    "master": task("master", 0, cluster=MASTER),
    "master_worker": task("worker", 1, cluster=MASTER),
    "master_evaluator": task("evaluator", 0, cluster=MASTER),
    "master_and_chief": task("master", 0, cluster={**MASTER, "chief": ["h9:1"]}),
    "two_masters": task("master", 0, cluster={"master": ["h0:1", "h9:1"]}),
    "master_only": task("master", 0, cluster={"master": ["h0:1"]}),
    "no_cluster_chief": task("chief", 0),
    "no_cluster_worker_0": task("worker", 0),
    "no_cluster_worker_1": task("worker", 1),
    "no_cluster_evaluator": task("evaluator", 0),
    "no_cluster_ps": task("ps", 0),
    "session_master": {"session_master": "grpc://s:1", "eval_session_master": "grpc://e:1"},
    "eval_session_master_only": {"eval_session_master": "grpc://e:1"},
    "session_master_in_cluster": task("chief", 0, cluster=WHOLE, session_master="grpc://s:1"),
    "google": task("chief", 0, cluster=WHOLE, environment="google"),
    "rpc_layer": task("worker", 0, cluster=WHOLE, rpc_layer="fast"),
    "service": {"service": {"answer": 42}},
    "service_not_a_dict": {"service": 1},
    "model_dir": {"model_dir": "runs/a"},
    "model_dir_empty": {"model_dir": ""},
}


def configured(environment, **arguments):
    """The properties of RunConfig under a TF_CONFIG, or the error."""
    os.environ["TF_CONFIG"] = environment if isinstance(environment, str) else json.dumps(environment)
    try:
        config = tf.estimator.RunConfig(**arguments)
    except Exception as error:
        return {"error": described(error)}
    finally:
        del os.environ["TF_CONFIG"]
    found = {name: getattr(config, name) for name in PROPERTIES}
    return {"error": None, "properties": {**found, "cluster_spec": config.cluster_spec.as_dict()}}


ARGUMENTS = {
    "defaults": {},
    "save_steps": {"save_checkpoints_steps": 10},
    "save_secs": {"save_checkpoints_secs": 10},
    "save_neither": {"save_checkpoints_steps": None, "save_checkpoints_secs": None},
    "save_both": {"save_checkpoints_steps": 10, "save_checkpoints_secs": 10},
    "save_steps_0": {"save_checkpoints_steps": 0},
    "save_steps_negative": {"save_checkpoints_steps": -1},
    "save_secs_negative": {"save_checkpoints_secs": -1},
    "model_dir_empty": {"model_dir": ""},
    "seed_text": {"tf_random_seed": "text"},
    "seed_float": {"tf_random_seed": 1.5},
    "seed_none": {"tf_random_seed": None},
    "summary_steps_0": {"save_summary_steps": 0},
    "summary_steps_negative": {"save_summary_steps": -1},
    "summary_steps_none": {"save_summary_steps": None},
    "keep_0": {"keep_checkpoint_max": 0},
    "keep_none": {"keep_checkpoint_max": None},
    "keep_negative": {"keep_checkpoint_max": -1},
    "hours_0": {"keep_checkpoint_every_n_hours": 0},
    "hours_negative": {"keep_checkpoint_every_n_hours": -1},
    "log_0": {"log_step_count_steps": 0},
    "log_negative": {"log_step_count_steps": -1},
    "log_none": {"log_step_count_steps": None},
    "device_fn_not_callable": {"device_fn": 1},
    "protocol_unknown": {"protocol": "smoke"},
    "session_config_text": {"session_config": "text"},
    "session_timeout_0": {"session_creation_timeout_secs": 0},
    "unknown": {"unknown": 1},
}
VALUES = (
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "save_summary_steps",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "tf_random_seed",
    "model_dir",
    "session_creation_timeout_secs",
)
REPLACEMENTS = {
    "steps_for_secs": ({}, {"save_checkpoints_steps": 5}),
    "secs_for_steps": ({"save_checkpoints_steps": 5}, {"save_checkpoints_secs": 7}),
    "both": ({}, {"save_checkpoints_steps": 5, "save_checkpoints_secs": 7}),
    "neither": ({"save_checkpoints_steps": 5}, {"save_checkpoints_steps": None, "save_checkpoints_secs": None}),
    "nothing": ({"save_checkpoints_steps": 5, "keep_checkpoint_max": 2}, {}),
    "keep": ({"save_checkpoints_steps": 5}, {"keep_checkpoint_max": 2}),
    "not_allowed": ({}, {"master": "grpc://h:1"}),
    "unknown": ({}, {"unknown": 1}),
    "bad_value": ({}, {"keep_checkpoint_max": -1}),
    "model_dir": ({"model_dir": "a"}, {"model_dir": "b"}),
    "model_dir_empty": ({"model_dir": "a"}, {"model_dir": ""}),
}


def values_of(make):
    """The plain values of the RunConfig that ``make`` returns, or its error."""
    error = error_of(make)
    return {"error": error, "values": None if error else {name: getattr(make(), name) for name in VALUES}}


def main():
    cases = {}
    for name, environment in ENVIRONMENTS.items():
        cases[f"environment_{name}"] = {"tf_config": environment, **configured(environment)}
    other = configured({"model_dir": "runs/a"}, model_dir="runs/b")
    cases["environment_other_model_dir"] = {"tf_config": {"model_dir": "runs/a"}, "model_dir": "runs/b", **other}
    cases["environment_not_json"] = {"tf_config": "{not json", **configured("{not json")}
    for name, arguments in ARGUMENTS.items():
        made = values_of(lambda arguments=arguments: tf.estimator.RunConfig(**arguments))
        cases[f"arguments_{name}"] = {"arguments": arguments, **made}
    for name, (arguments, replacement) in REPLACEMENTS.items():
        made = values_of(lambda a=arguments, r=replacement: tf.estimator.RunConfig(**a).replace(**r))
        cases[f"replace_{name}"] = {"arguments": arguments, "replace": replacement, **made}
    write(__file__, cases)


if __name__ == "__main__":
    main()
