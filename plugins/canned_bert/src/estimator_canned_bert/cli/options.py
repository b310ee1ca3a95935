"""The arguments of `estimator bert-classifier`: those of run_classifier.py that still apply, and further ones."""

from __future__ import annotations

import argparse
import math
from typing import Any

from estimator_canned_bert.config import SIZES
from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds all arguments."""
    _data(parser.add_argument_group("data"))
    _model(parser.add_argument_group("model"))
    _training(parser.add_argument_group("training"))
    _what(parser.add_argument_group("actions (default: all actions that have files)"))
    parser.add_argument("--json", action="store_true", help="print JSON, and log lines to standard error")


def _data(group: Any) -> None:
    group.add_argument(
        "--data", "--data-dir", dest="data", help="directory with train, dev and test files (.tsv, .csv, .jsonl)"
    )
    group.add_argument("--task-name", help="GLUE task that defines the file layout (default: from header or columns)")
    group.add_argument("--labels", help="comma-separated class names (default: those of train, sorted)")
    group.add_argument("--regression", action="store_true", help="the label is a number")
    group.add_argument("--vocab-file", help="vocab.txt or tokenizer.json (default: next to the weights)")
    case = group.add_mutually_exclusive_group()
    case.add_argument(
        "--do-lower-case",
        dest="lower",
        action="store_true",
        default=None,
        help="the vocabulary is uncased (default: from tokenizer_config.json next to it, else uncased)",
    )
    case.add_argument("--no-do-lower-case", dest="lower", action="store_false", help="the vocabulary is cased")
    group.add_argument("--max-seq-length", type=int, default=128, help="tokens per sequence (default: 128)")
    group.add_argument(
        "--buckets", type=int, default=1, help="number of lengths that training batches are padded to (default: 1)"
    )
    group.add_argument(
        "--pack",
        nargs="?",
        const=True,
        default=False,
        type=int,
        metavar="ROWS",
        help="combine short sentences into rows: faster, with the same results (default: no)",
    )
    group.add_argument("--cache-dir", type=local_path, help="directory of encoded files for later runs")


def _model(group: Any) -> None:
    group.add_argument("--init-checkpoint", help="a Hugging Face directory or a TensorFlow checkpoint")
    group.add_argument("--bert-config-file", help="config.json (default: next to the weights)")
    group.add_argument(
        "--size",
        default="tiny",
        help=f"size of a model without pretrained weights: {', '.join(SIZES)} (default: tiny)",
    )
    group.add_argument(
        "--vocab-size", type=int, default=8000, help="size of a vocabulary built from train (default: 8000)"
    )
    group.add_argument(
        "--model-dir", "--output-dir", dest="model_dir", type=local_path, required=True, help="directory of the results"
    )
    group.add_argument(
        "--precision", choices=("float32", "bfloat16"), default="float32", help="dtype of the computation"
    )
    group.add_argument("--remat", action="store_true", help="recompute layers in the backward pass to save memory")
    group.add_argument("--backend", default="auto", help="device backend (default: auto)")


def _training(group: Any) -> None:
    group.add_argument("--train-batch-size", type=int, default=32, help="default: 32")
    group.add_argument("--eval-batch-size", type=int, default=32, help="default: 32")
    group.add_argument("--predict-batch-size", type=int, default=32, help="default: 32")
    group.add_argument("--learning-rate", type=float, help="highest learning rate (default: 5e-5; from scratch 5e-4)")
    group.add_argument("--num-train-epochs", type=float, default=3.0, help="passes over train (default: 3)")
    group.add_argument("--warmup-proportion", type=float, default=0.1, help="fraction of warm-up steps (default: 0.1)")
    group.add_argument(
        "--save-checkpoints-steps", type=int, help="steps between evaluations (default: a fifth of the run)"
    )
    group.add_argument("--iterations-per-loop", type=int, default=1, help="steps per dispatch (default: 1)")
    group.add_argument("--early-stop-steps", type=int, help="stop after this many steps without a better evaluation")
    group.add_argument("--seed", type=int, default=0, help="seed of initial values, order and dropout (default: 0)")
    group.add_argument("--weight-decay", type=float, default=0.01, help="default: 0.01")
    group.add_argument(
        "--bias-correction", action="store_true", help="use Adam with bias correction, like transformers"
    )
    group.add_argument(
        "--layer-decay", type=float, default=1.0, help="learning rate of a layer relative to the layer above it"
    )
    group.add_argument("--frozen-layers", type=int, default=-1, help="number of frozen layers; 0: only the embeddings")
    group.add_argument("--lora-rank", type=int, help="train low-rank additions instead of the encoder")
    group.add_argument(
        "--ema-decay", type=float, help="evaluate an average of the weights with this decay, such as 0.999"
    )
    group.add_argument("--class-weights", help="comma-separated class weights of the loss")


def _what(group: Any) -> None:
    group.add_argument("--do-train", action="store_true", help="train, and evaluate at each checkpoint")
    group.add_argument("--do-eval", action="store_true", help="evaluate dev; writes <model-dir>/eval_results.txt")
    group.add_argument("--do-predict", action="store_true", help="predict test; writes <model-dir>/test_results.tsv")
    group.add_argument("--do-export", action="store_true", help="export with text-in signatures")
    group.add_argument(
        "--export-hugging-face", metavar="DIR", type=local_path, help="write the weights for transformers"
    )
    group.add_argument(
        "--text", action="append", default=[], help='text to predict with the export; "text A ||| text B" for a pair'
    )
    group.add_argument("--serve", type=int, metavar="PORT", help="serve the export at the end")


def check(args: argparse.Namespace) -> None:
    """Refuses impossible arguments before any work is done.

    Raises:
        ArgumentError: an argument is impossible. The message names it.
    """
    for name in ("train_batch_size", "eval_batch_size", "predict_batch_size", "max_seq_length", "buckets"):
        _positive(args, name)
    if args.pack is not False:
        _positive(args, "pack")
        if args.buckets > 1:
            raise ArgumentError("--pack and --buckets exclude each other: packed rows have one length.")
    for name in ("num_train_epochs", "learning_rate", "early_stop_steps", "save_checkpoints_steps", "lora_rank"):
        if getattr(args, name) is not None:
            _positive(args, name)
    if not 0 <= args.warmup_proportion <= 1:
        raise ArgumentError(f"--warmup-proportion should lie in [0, 1], given: {args.warmup_proportion}.")
    if args.serve is not None and not 0 <= args.serve <= 65535:
        raise ArgumentError(f"--serve should be a port from 0 to 65535, given: {args.serve}.")
    asked = args.do_train or args.do_eval or args.do_predict or args.do_export or args.export_hugging_face
    if asked and not args.data:
        raise ArgumentError("--data is needed to train, evaluate, predict or export.")
    if not args.data and not args.text and args.serve is None:
        raise ArgumentError("--data is missing: the directory with the files train, dev and test.")


def numbers(text: str | None, name: str) -> list[float] | None:
    """Returns numbers that are separated by commas.

    Raises:
        ArgumentError: a part is not a number.
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ArgumentError(f"--{name} should be numbers separated by commas, given: {text!r}.") from error


def _positive(args: argparse.Namespace, name: str) -> None:
    value = getattr(args, name)
    if not 0 < value < math.inf:
        kind = "finite" if value > 0 else "positive"
        raise ArgumentError(f"--{name.replace('_', '-')} should be {kind}, given: {value}.")
