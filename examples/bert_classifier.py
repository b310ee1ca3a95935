"""Fine-tune BERT on sentences, stop early, export, and predict. The command `estimator bert-classifier` does the same,
and bert.toml runs a small one from a file.

    python examples/bert_classifier.py DATA PRETRAINED MODEL_DIR

DATA contains train.tsv, dev.tsv and test.tsv, with a label and one or two sentences per line. PRETRAINED is a Hugging
Face directory, or a directory with a google-research checkpoint. It also contains vocab.txt.
"""

import sys

import estimator_core as ec
from estimator_canned_bert import BertConfig, ClassifierData, bert_model_fn_builder
from estimator_exporters import BestExporter
from estimator_hooks import LoggingTensorHook, stop_if_no_decrease_hook


def batches(data_dir, vocab, split, batch_size, training):
    """Returns a file of sentences as an input, for bert.toml."""
    data = ClassifierData.from_tsv(data_dir, vocab=vocab, max_seq_length=16, do_lower_case=True)
    return getattr(data, split).input_fn(batch_size, shuffle=training)


def run(data_dir, pretrained, model_dir, *, batch_size=32, epochs=3.0):
    data = ClassifierData.from_tsv(data_dir, vocab=pretrained, max_seq_length=128, do_lower_case=True)
    train, dev, test = data.train, data.dev, data.test
    if train is None or dev is None or test is None:
        sys.exit(f"{data_dir} must hold train, dev and test files.")
    train_steps = int(len(train) / batch_size * epochs)
    estimator = ec.Estimator(
        bert_model_fn_builder(
            BertConfig.from_pretrained(pretrained),
            num_labels=len(data.labels),
            init_checkpoint=pretrained,
            learning_rate=2e-5,
            num_train_steps=train_steps,
            num_warmup_steps=train_steps // 10,
            compute_dtype="bfloat16",
        ),
        config=ec.RunConfig(model_dir=model_dir, save_checkpoints_steps=200),
    )
    stop = stop_if_no_decrease_hook(estimator, "eval_loss", max_steps_without_decrease=600, run_every_steps=200)
    ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(
            train.input_fn(batch_size, shuffle=True),
            max_steps=train_steps,
            hooks=[stop, LoggingTensorHook(["loss", "learning_rate"], every_n_iter=10)],
        ),
        ec.EvalSpec(
            dev.input_fn(batch_size), steps=None, exporters=BestExporter("best", data.serving_input_receiver_fn())
        ),
    )
    for example, prediction in zip(test, estimator.predict(test.input_fn(batch_size)), strict=False):
        print(example.text_a, data.labels[prediction["predictions"]], prediction["probabilities"])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    run(*sys.argv[1:])
