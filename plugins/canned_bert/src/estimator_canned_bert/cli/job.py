"""One run of the command: its data, its estimator, and the steps that a user may request."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_bert.classifier import BertClassifier
from estimator_canned_bert.cli.baseline import baseline_of
from estimator_canned_bert.cli.options import numbers
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.early_stop import StopWithoutImprovement
from estimator_canned_bert.lora import LoraConfig, merge_lora
from estimator_canned_bert.optimization import Optimization
from estimator_canned_bert.text import ClassifierData, Split, build_vocabulary
from estimator_canned_bert.text.layouts import task_layout
from estimator_canned_bert.text.rows import SUFFIXES, read_rows
from estimator_canned_bert.text.vocabulary import write_at_once
from estimator_canned_bert.weights import save_pretrained
from estimator_core.errors import ArgumentError, PluginLookupError
from estimator_core.plugins import default_plugins

_log = logging.getLogger("estimator_canned_bert")
_CONFIG, _RESULTS, _PREDICTIONS = "bert_config.json", "eval_results.txt", "test_results.tsv"


@dataclass(frozen=True, kw_only=True)
class Job:
    """The data and the estimator of one run.

    Args:
        args: the arguments of the command.
        data: the files of the task.
        classifier: the estimator.
        steps: the number of training steps.
    """

    args: argparse.Namespace
    data: ClassifierData
    classifier: BertClassifier
    steps: int

    @classmethod
    def of(cls, args: argparse.Namespace) -> Job:
        """Reads and checks everything, so that impossible requests are refused before any training.

        Raises:
            ArgumentError, InputError: the request is impossible. The message names the argument, or file and line.
        """
        vocabulary = _vocabulary(args)
        data = ClassifierData(
            args.data,
            vocab=vocabulary,
            max_seq_length=args.max_seq_length,
            do_lower_case=args.lower,
            task=args.task_name,
            labels=args.labels.split(",") if args.labels else _known_labels(args),
            regression=args.regression,
            cache_dir=args.cache_dir,
        )
        config = _config(args, data)
        steps = 1
        if data.train is not None:
            steps = max(1, math.ceil(len(data.train) / args.train_batch_size * args.num_train_epochs))
        for split in (data.dev, data.test):
            if split is not None:
                len(split)  # encodes the file, so its faults are reported before training
        return cls(args=args, data=data, classifier=_classifier(args, data, config, steps), steps=steps)

    @property
    def trained(self) -> bool:
        """Whether there is a checkpoint."""
        return self.classifier.latest_checkpoint() is not None

    @property
    def can_export(self) -> bool:
        """Whether a package that writes exports is installed."""
        return "stablehlo" in default_plugins().names("format")

    def train(self) -> dict[str, Any]:
        """Trains, with an evaluation at every checkpoint if there is a development file.

        Returns:
            The part of the JSON output for this step. The other steps return their parts, too.
        """
        train = _needed(self.data.train, "train", self.args.data)
        args = self.args
        input_fn = _whole(
            train.input_fn(args.train_batch_size, shuffle=True, seed=args.seed, buckets=args.buckets, pack=args.pack)
        )
        _log.info("Training: %d examples, %d steps of %d.", len(train), self.steps, args.train_batch_size)
        hooks: list[Any] = []
        if args.early_stop_steps:
            if self.data.dev is None:
                raise ArgumentError("--early-stop-steps needs a dev file to evaluate.")
            every = self.classifier.config.save_checkpoints_steps or 1
            hooks.append(
                StopWithoutImprovement(self.classifier.eval_dir(), patience=args.early_stop_steps, every_steps=every)
            )
        if self.data.dev is None:
            self.classifier.train(input_fn, max_steps=self.steps, hooks=hooks)
        else:
            ec.train_and_evaluate(
                self.classifier,
                ec.TrainSpec(input_fn, max_steps=self.steps, hooks=hooks),
                ec.EvalSpec(self._in_order(self.data.dev, args.eval_batch_size), exporters=self._best_exporter()),
            )
        print(f"trained: {self.classifier.stop_reason}")
        return {"stop_reason": self.classifier.stop_reason}

    def evaluate(self) -> dict[str, Any]:
        """Evaluates on the development file. Prints and writes the results."""
        dev = _needed(self.data.dev, "dev", self.args.data)
        metrics = self.classifier.evaluate(self._in_order(dev, self.args.eval_batch_size))
        lines = [f"{name} = {value}" for name, value in sorted(metrics.items())]
        if self.classifier.config.is_chief:
            Path(self.args.model_dir, _RESULTS).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(lines))
        found: dict[str, Any] = {"metrics": _json_numbers(metrics)}
        if self.data.train is not None:
            baseline = baseline_of(self.data.train, dev, regression=self.data.regression)
            print(f"for comparison, {baseline.told}")
            found["baseline"] = _json_numbers(baseline.metrics)
        return found

    def predict(self) -> dict[str, Any]:
        """Predicts the test file. Each line of the result has the prediction and the probability of each class."""
        test = _needed(self.data.test, "test", self.args.data)
        path = Path(self.args.model_dir, _PREDICTIONS)
        predictions = self.classifier.predict(self._in_order(test, self.args.predict_batch_size))
        count = 0
        # Every process has all predictions. The chief writes them.
        with open(path if self.classifier.config.is_chief else os.devnull, "w", encoding="utf-8") as file:
            print("\t".join(["prediction", *self.data.labels]), file=file)
            for prediction in predictions:
                count += 1
                if self.data.regression:
                    print(float(prediction["predictions"]), file=file)
                else:
                    name = self.data.labels[int(prediction["predictions"])]
                    print("\t".join([name, *(f"{p:.6f}" for p in prediction["probabilities"])]), file=file)
        print(f"predicted {count} examples: {path}")
        return {"predictions": str(path), "predicted": count}

    def export(self) -> dict[str, Any]:
        """Exports the newest weights with signatures that accept text."""
        if not self.can_export:
            raise ArgumentError("Exports need estimator-exporters: install it.")
        if not self.classifier.config.is_chief:
            return {}  # a run has one export, which needs no other process
        receiver = self.data.serving_input_receiver_fn()
        path = self.classifier.export_saved_model(str(Path(self.args.model_dir, "export", "final")), receiver)
        print(f"exported: {path}")
        return {"export": path}

    def export_hugging_face(self, directory: str) -> dict[str, Any]:
        """Writes the weights for transformers."""
        variables = dict(self.classifier.variables)
        if not self.classifier.config.is_chief:
            return {}
        if self.args.lora_rank:
            variables = merge_lora(variables, LoraConfig(rank=self.args.lora_rank))
        save_pretrained(
            directory,
            {name: np.asarray(value) for name, value in variables.items()},
            self.classifier.bert_config,
            labels=self.data.labels or None,
            regression=self.data.regression,
            tokenizer=self.data.tokenizer.path,
            do_lower_case=self.data.tokenizer.do_lower_case if self.data.tokenizer.path.suffix == ".txt" else None,
        )
        print(f"written for transformers: {directory}")
        return {"hugging_face": directory}

    def _in_order(self, split: Split, batch_size: int) -> Any:
        """Returns an input_fn that reads a file once, in its order. A row count of --pack is for training only."""
        return _whole(split.input_fn(batch_size, pack=bool(self.args.pack)))

    def _best_exporter(self) -> Any:
        if not self.can_export:
            return ()
        try:
            best = default_plugins().get("exporter", "best")
        except PluginLookupError:
            return ()
        return best("best", self.data.serving_input_receiver_fn())


def _whole(input_fn: Any) -> Any:
    """Returns an input whose batch size is the total of all processes, so they count the steps of one process."""
    return ec.inputs.from_iterable(input_fn, fresh_arrays=True, whole=True)


def _known_labels(args: argparse.Namespace) -> list[str] | None:
    """Returns the classes of an existing run, for evaluation and prediction without a training file."""
    path = Path(args.model_dir, _CONFIG)
    if args.task_name or args.regression or not _begun(args) or _train_files(args):
        return None
    return json.loads(path.read_text(encoding="utf-8")).get("labels") or None


def _json_numbers(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    numbers = {name: float(value) for name, value in metrics.items()}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def _begun(args: argparse.Namespace) -> bool:
    """Returns whether the model_dir has a run of this command."""
    return Path(args.model_dir, _CONFIG).is_file() and Path(args.model_dir, "checkpoints").is_dir()


def _needed(split: Split | None, name: str, directory: str) -> Split:
    if split is None:
        raise ArgumentError(f"There is no {name} file ({', '.join(SUFFIXES)}) in {directory}.")
    return split


def _vocabulary(args: argparse.Namespace) -> str | Path:
    """Returns the vocabulary of the arguments, the weights or an earlier run, or makes it from the training file."""
    if args.vocab_file or args.init_checkpoint:
        return args.vocab_file or args.init_checkpoint
    own = Path(args.model_dir, "vocab.txt")
    if own.is_file() and (_begun(args) or not _train_files(args)):  # not that of a call that was refused
        return own
    train = _train_files(args)
    if not train:
        raise ArgumentError(f"There is no train file in {args.data} to make a vocabulary from: give --vocab-file.")
    columns = None if args.task_name is None else task_layout(args.task_name).train
    rows = read_rows(train[0], columns, labels=True)
    texts = (text for row in rows for text in (row.text_a, row.text_b) if text)
    _log.info("Making a vocabulary from %s.", train[0])
    return build_vocabulary(texts, own, size=args.vocab_size, do_lower_case=args.lower is not False)


def _train_files(args: argparse.Namespace) -> list[Path]:
    return [path for suffix in SUFFIXES if (path := Path(args.data, f"train{suffix}")).is_file()]


def _config(args: argparse.Namespace, data: ClassifierData) -> BertConfig:
    size = data.tokenizer.vocabulary_size
    if args.bert_config_file:
        config = BertConfig.from_json_file(args.bert_config_file)
    elif args.init_checkpoint:
        config = BertConfig.from_pretrained(args.init_checkpoint)
    else:
        print(
            f"There are no pretrained weights (--init-checkpoint): a model of size {args.size} is trained from "
            "scratch, on your texts only."
        )
        config = BertConfig.of_size(args.size, vocab_size=size, max_position_embeddings=max(args.max_seq_length, 64))
        # The deviation 0.02 suits wide models. A narrow model would hardly distinguish texts at first.
        config = config.replace(initializer_range=config.hidden_size**-0.5)
    if size > config.vocab_size:
        raise ArgumentError(
            f"The vocabulary {data.tokenizer.path} has {size} tokens, but the model only {config.vocab_size}: they do "
            "not belong together. Give the vocabulary of the weights."
        )
    if args.max_seq_length > config.max_position_embeddings:
        raise ArgumentError(
            f"Cannot use sequence length {args.max_seq_length}: the model has {config.max_position_embeddings} "
            "positions. Give a smaller --max-seq-length."
        )
    _remember(args, config, data)
    return config


def _remember(args: argparse.Namespace, config: BertConfig, data: ClassifierData) -> None:
    """Writes the shape of the model next to its checkpoints, and refuses to continue with a different one."""
    path = Path(args.model_dir, _CONFIG)
    own = {**config.to_dict(), "labels": list(data.labels), "vocabulary": data.tokenizer.fingerprint}
    if _begun(args):
        known = json.loads(path.read_text(encoding="utf-8"))
        differing = sorted(key for key in {*known, *own} if known.get(key) != own.get(key))
        if differing:
            raise ArgumentError(
                f"{args.model_dir} holds a run with different {', '.join(differing)}. Use another --model-dir, or "
                "the arguments and files of that run."
            )
    write_at_once(path, json.dumps(own, indent=2) + "\n")


def _classifier(args: argparse.Namespace, data: ClassifierData, config: BertConfig, steps: int) -> BertClassifier:
    rate = args.learning_rate or (5e-5 if args.init_checkpoint else 5e-4)
    return BertClassifier(
        config,
        num_labels=len(data.labels) or 1,
        regression=data.regression,
        label_names=data.labels or None,
        class_weights=numbers(args.class_weights, "class-weights"),
        init_checkpoint=args.init_checkpoint,
        learning_rate=rate,
        num_train_steps=steps,
        num_warmup_steps=int(steps * args.warmup_proportion),
        optimization=Optimization(
            weight_decay=args.weight_decay,
            bias_correction=args.bias_correction,
            layer_decay=args.layer_decay,
            frozen_layers=args.frozen_layers,
            ema_decay=args.ema_decay,
        ),
        lora=LoraConfig(rank=args.lora_rank) if args.lora_rank else None,
        compute_dtype=args.precision,
        remat=args.remat,
        config=ec.RunConfig(
            model_dir=args.model_dir,
            tf_random_seed=args.seed,
            backend=args.backend,
            save_checkpoints_steps=args.save_checkpoints_steps or max(1, math.ceil(steps / 5)),
            steps_per_dispatch=args.iterations_per_loop,
        ),
    )
