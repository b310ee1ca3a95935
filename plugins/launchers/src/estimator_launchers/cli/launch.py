"""Run a command as several processes that train together: here, under Slurm, on Kubernetes, on Ray.

Example:
    estimator launch --processes 4 -- python train.py
    estimator launch --on slurm --processes 8 --hosts 2 --option partition=gpu -- estimator run experiment.py
    estimator launch --on kubernetes --processes 4 --image IMAGE --model-dir gs://b/run --dry-run -- python train.py

Shows what the processes write, each line with the number of its process. Returns 0 if all succeed, 75 if a new start
continues the job, 1 if the job failed. SIGTERM and SIGINT ask the processes to save and end. A second signal kills
local ones at once.
"""

from __future__ import annotations

import argparse
import sys

from estimator_core.errors import ArgumentError
from estimator_launchers.contract import JobSpec, JobStatus
from estimator_launchers.launching import find_launcher, parse_pairs, submit_and_follow


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator launch`."""
    parser.add_argument("--on", default="local", metavar="NAME", help="the launcher (default: local)")
    parser.add_argument("--processes", type=int, metavar="N", help="processes that train together")
    parser.add_argument("--hosts", type=int, default=1, metavar="N", help="machines to spread them over (default: 1)")
    parser.add_argument("--devices", type=int, metavar="K", help="cards of each process; virtual CPU devices elsewhere")
    parser.add_argument("--evaluator", action="store_true", help="one further process evaluates checkpoints")
    parser.add_argument("--name", default="train", help="name of the job (default: train)")
    parser.add_argument("--image", default="", help="container image")
    parser.add_argument("--model-dir", default="", metavar="DIR", help="where the run writes, for TensorBoard")
    parser.add_argument(
        "--max-restarts", type=int, default=0, metavar="N", help="how often to start again (default: 0)"
    )
    parser.add_argument("--min-processes", type=int, metavar="N", help="least number that may continue after a loss")
    parser.add_argument(
        "--grace-secs", type=float, default=60.0, metavar="S", help="seconds to save and end (default: 60)"
    )
    parser.add_argument(
        "--time-limit-secs", type=float, metavar="S", help="seconds after which the scheduler ends the job"
    )
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of each process")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of this launcher only"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be submitted")
    parser.add_argument("--detach", action="store_true", help="submit, print the job's id, and end")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--status", metavar="ID", help="print the state of a job")
    actions.add_argument("--stop", metavar="ID", help="ask a job to save and end")
    actions.add_argument("--logs", metavar="ID", help="show the output of a process of a job; see --process")
    parser.add_argument("--process", type=int, default=0, metavar="I", help="the process for --logs (default: 0)")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what each process runs")


def run(args: argparse.Namespace) -> int:
    """Submits and follows a job, or carries out one action on an earlier job."""
    launcher = find_launcher(args.on)
    if args.status:
        return _tell(launcher.status(args.status))
    if args.stop:
        launcher.stop(args.stop, args.grace_secs)
        return _tell(launcher.status(args.stop))
    if args.logs:
        for line in launcher.logs(args.logs, args.process):
            print(line, flush=True)
        return 0
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise ArgumentError("give the command to run after --, for example -- python train.py")
    if args.processes is None:
        raise ArgumentError("give the number of processes that train together, for example --processes 2")
    job = JobSpec(
        command=tuple(program),
        processes=args.processes,
        name=args.name,
        hosts=args.hosts,
        devices=args.devices,
        evaluator=args.evaluator,
        env=parse_pairs(args.env, "--env"),
        image=args.image,
        max_restarts=args.max_restarts,
        min_processes=args.min_processes,
        grace_secs=args.grace_secs,
        time_limit_secs=args.time_limit_secs,
        model_dir=args.model_dir,
        attached=not args.detach,
        options=parse_pairs(args.option, "--option"),
    )
    plan = launcher.plan(job)
    if args.dry_run:
        print(plan.text())
        return 0
    if args.detach:
        print(launcher.submit(plan))
        return 0

    def submitted(job_id: str) -> None:
        print(f"estimator launch: job {job_id} on {launcher.name}", file=sys.stderr, flush=True)

    status = submit_and_follow(launcher, plan, submitted=submitted)
    if status.phase != "succeeded":
        print(f"estimator launch: {status.phase}: {status.why or 'no reason is known'}", file=sys.stderr)
    return status.exit_status


def _tell(status: JobStatus) -> int:
    restarts = f", started again {status.restarts} times" if status.restarts else ""
    print(f"{status.phase}{restarts}{f': {status.why}' if status.why else ''}")
    return status.exit_status if status.ended else 0
