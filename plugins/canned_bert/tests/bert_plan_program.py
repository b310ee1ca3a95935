"""The experiment that the tests of `estimator plan` compile: BERT-base, 128 tokens, batch 256, fully sharded."""

import numpy as np

import estimator_core as ec
from estimator_canned_bert import BertClassifier, BertConfig, fully_sharded_rules


def experiment_fn(run_config, hparams):
    classifier = BertClassifier(
        BertConfig.of_size("base"),
        num_labels=2,
        num_train_steps=1000,
        num_warmup_steps=100,
        compute_dtype="bfloat16",
        config=run_config.replace(mesh={"data": -1}, partition_rules=fully_sharded_rules()),
    )
    ids = np.ones((256, 128), np.int32)
    features = {"input_ids": ids, "input_mask": ids, "segment_ids": 0 * ids}
    inputs = ec.inputs.numpy_input_fn(features, np.zeros(256, np.int32), batch_size=256, shuffle=False)
    return ec.Experiment(classifier, train_input_fn=inputs, eval_input_fn=inputs)
