"""Fine-tune BERT or ALBERT on a directory of texts: train, evaluate, predict, export, serve.

    estimator bert-classifier --data glue/MRPC --task-name mrpc --init-checkpoint uncased_L-12 --model-dir runs/mrpc
    estimator bert-classifier --data reviews --model-dir runs/reviews --text "not bad at all"
    estimator serve runs/reviews/export

A line of train.tsv is a label and one or two texts, separated by tabs, or the first line names the columns. Without
--init-checkpoint, a small model is trained from scratch. Running the same command again continues an interrupted run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from typing import Any

from estimator_canned_bert.cli.options import add_arguments, check


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the requested steps in order."""
    from estimator_canned_bert.cli.exported import serve

    check(args)
    logging.getLogger("estimator_canned_bert").setLevel(logging.getLogger("estimator_core").level)
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        found = _done(args)
    if args.json:
        print(json.dumps(found), flush=True)
    return 0 if args.serve is None else serve(args.model_dir, args.serve)


def _done(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the requested steps. Returns what each of them prints, for JSON."""
    from estimator_canned_bert.cli.exported import parts_of, predict_texts
    from estimator_canned_bert.cli.job import Job

    found: dict[str, Any] = {"model_dir": args.model_dir}
    everything = bool(args.data) and not (args.do_train or args.do_eval or args.do_predict or args.do_export)
    if args.data:
        job = Job.of(args)
        parts_of(args.text, 1 + job.data.pairs)  # before any work
        if args.do_train or (everything and (job.data.train is not None or not job.trained)):
            found |= job.train()
        if args.do_eval or (everything and job.data.dev is not None):
            found |= job.evaluate()
        if args.do_predict or (everything and job.data.test is not None):
            found |= job.predict()
        if args.do_export or (everything and job.can_export):
            found |= job.export()
        if args.export_hugging_face:
            found |= job.export_hugging_face(args.export_hugging_face)
    if args.text:
        found |= predict_texts(args.model_dir, args.text)
    return found
