"""One side of `bert.py`, in a separate process: the Estimator, a loop in JAX, or the Trainer of transformers.

`bert.py` starts it with the interpreter of the side. It imports nothing that only the environment of another side has.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _bert_text import Sentences, read

RATE, EPSILON = 1e-5, 1e-8


def options() -> argparse.ArgumentParser:
    """Returns the parser of the task, and of the communication with the process that started this one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", choices=list(SIDES), required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--sentences", required=True)
    parser.add_argument("--replies", type=int, required=True)
    for name in ("batch", "length", "steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--precision", required=True)
    return parser


def features(sentences: Sentences, args: argparse.Namespace) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Returns batches with one sentence per row, padded to the longest length, as the encoder accepts them."""
    made = [sentences.padded(step * args.batch, args.batch, args.length) for step in range(args.steps)]
    return [({"input_ids": one["input_ids"], "input_mask": one["attention_mask"]}, one["labels"]) for one in made]


def estimator(sentences: Sentences, args: argparse.Namespace, *, pack: bool = False) -> Callable[[], float]:
    """Returns the training of the Estimator, on the weights of a Hugging Face directory."""
    import estimator_core as ec
    from estimator_canned_bert import BertClassifier, Optimization

    classifier = BertClassifier(
        num_labels=2,
        init_checkpoint=args.weights,
        learning_rate=RATE,
        optimization=Optimization(bias_correction=True, epsilon=EPSILON),
        compute_dtype=args.precision,
        config=ec.RunConfig(
            model_dir=tempfile.mkdtemp(),
            tf_random_seed=0,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
            save_summary_steps=0,
            log_step_count_steps=None,
            default_hooks=False,
        ),
    )
    batches = features(sentences, args)
    input_fn = _packed(sentences, args) if pack else lambda: batches

    def train() -> float:
        began = time.perf_counter()
        classifier.train(input_fn, steps=args.steps)
        # Reads the newest weights, because steps may still be in progress.
        classifier.get_variable_value("output_bias")
        return time.perf_counter() - began

    return train


def packed(sentences: Sentences, args: argparse.Namespace) -> Callable[[], float]:
    """Returns the training of the Estimator, with several sentences per row. The time includes packing."""
    return estimator(sentences, args, pack=True)


def _packed(sentences: Sentences, args: argparse.Namespace) -> Any:
    from estimator_canned_bert.text.batches import BatchPlan, TextInput
    from estimator_canned_bert.text.encoded import EncodedExamples

    count = args.steps * args.batch
    examples = EncodedExamples(
        tokens=sentences.tokens,
        ends=sentences.ends[: count + 1],
        first=sentences.lengths[:count].astype(np.int32),
        labels=sentences.labels[:count],
        pad_id=0,
        key="benchmark",
    )
    plan = BatchPlan(batch_size=args.batch, buckets=(args.length,), seed=None, num_epochs=1, pack=True)
    return TextInput(examples, plan)


def plain(sentences: Sentences, args: argparse.Namespace) -> Callable[[], float]:
    """Returns a hand-written loop: a jitted step with the same encoder and optimizer, and nothing else."""
    import jax
    import jax.numpy as jnp
    import optax

    from estimator_canned_bert import (
        BertConfig,
        EncoderOptions,
        Optimization,
        create_optimizer,
        encode,
        read_checkpoint,
    )
    from estimator_canned_bert.encoder.layers import dropout

    config = BertConfig.from_pretrained(args.weights)
    optimizer = create_optimizer(RATE, config=config, options=Optimization(bias_correction=True, epsilon=EPSILON))
    chosen = EncoderOptions(dtype=jnp.dtype(args.precision))

    def loss_of(weights: Any, batch: Any, labels: Any, key: Any) -> Any:
        ids, mask = batch["input_ids"], batch["input_mask"]
        first, second = jax.random.split(key)
        encoded = encode(weights, config, ids, mask, 0 * ids, key=first, options=chosen)
        pooled = dropout(encoded.pooled.astype(jnp.float32), config.output_dropout, second)
        logits = pooled @ weights["output_weights"].T + weights["output_bias"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(state: Any, batch: Any, labels: Any, key: Any) -> Any:
        weights, slots = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch, labels, key)
        updates, slots = optimizer.update(gradients, slots, weights)
        return (optax.apply_updates(weights, updates), slots), loss

    compiled = jax.jit(step, donate_argnums=0)
    weights = {name: jnp.asarray(value) for name, value in read_checkpoint(args.weights).items()}
    state: list[Any] = [(weights, optimizer.init(weights))]
    batches = features(sentences, args)

    def train() -> float:
        began = time.perf_counter()
        for number, (batch, labels) in enumerate(batches):
            state[0], _ = compiled(state[0], batch, labels, jax.random.key(number))
        jax.block_until_ready(state[0])
        return time.perf_counter() - began

    return train


def trainer(sentences: Sentences, args: argparse.Namespace, *, compiled: bool = False) -> Callable[[], float]:
    """Returns the training of the Trainer of transformers: batches as long as their longest sentence."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(args.threads)
    model = transformers.BertForSequenceClassification.from_pretrained(args.weights, num_labels=2)

    def collate(numbers: list[int]) -> dict[str, Any]:
        # A compiled model has one shape, like the Estimator. Without compilation, the longest sentence decides.
        length = args.length if compiled else int(sentences.lengths[numbers].max())
        rows = [sentences.padded(number, 1, length) for number in numbers]
        return {name: torch.as_tensor(np.concatenate([row[name] for row in rows])).long() for name in rows[0]}

    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=args.batch,
        max_steps=args.steps,
        learning_rate=RATE,
        weight_decay=0.01,
        lr_scheduler_type="constant",
        bf16=args.precision == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        torch_compile=compiled,
        # jax multiplies float32 like this by default, if the GPU supports it.
        tf32=True if torch.cuda.is_available() and args.precision == "float32" else None,
        remove_unused_columns=False,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    numbers = list(range(args.steps * args.batch))

    def train() -> float:
        made = transformers.Trainer(model=model, args=arguments, train_dataset=numbers, data_collator=collate)
        began = time.perf_counter()
        made.train()
        return time.perf_counter() - began

    return train


def compiled_trainer(sentences: Sentences, args: argparse.Namespace) -> Callable[[], float]:
    """Returns the same training through torch.compile."""
    return trainer(sentences, args, compiled=True)


SIDES: dict[str, Callable[[Sentences, argparse.Namespace], Callable[[], float]]] = {
    "ours": estimator,
    "packed": packed,
    "plain": plain,
    "theirs": trainer,
    "compiled": compiled_trainer,
}


def peak_mb(side: str) -> float:
    """Returns the peak memory of the GPU that the side has used, or of the process without a GPU, in MB."""
    if side in ("theirs", "compiled"):
        import torch

        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated() / 2**20
    else:
        import jax

        told = jax.devices()[0].memory_stats() or {}
        if "peak_bytes_in_use" in told:
            return told["peak_bytes_in_use"] / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Reports that it is ready, then trains for each line that it reads, and reports the seconds."""
    args = options().parse_args()

    def reply(value: dict[str, Any]) -> None:
        os.write(args.replies, (json.dumps(value) + "\n").encode())

    train = SIDES[args.side](read(args.sentences), args)
    train()
    reply({"ready": True})
    for _ in sys.stdin:
        seconds = train()
        reply({"seconds": seconds, "peak_mb": peak_mb(args.side)})


if __name__ == "__main__":
    main()
