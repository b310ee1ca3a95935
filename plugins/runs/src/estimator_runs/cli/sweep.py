"""Search hyperparameters with Optuna, as configured in [sweep] of a configuration file.

Every trial has its own model_dir. After a kill at any moment, running the command again continues the sweep with the
same trials. At the end it prints the best trials, the importance of the hyperparameters, and the file of the best
configuration for `estimator run`.

Example:
    estimator sweep digits.toml
    estimator sweep digits.toml --set sweep.trials=60 --set sweep.workers=2
    estimator sweep digits.toml --show
    estimator sweep digits.toml --trial 7
    estimator sweep digits.toml --give-up 7
    estimator launch --on slurm --processes 4 -- estimator sweep digits.toml --set sweep.workers=4 --worker
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_runs.cli.arguments import add_file_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator sweep`."""
    add_file_arguments(parser, table="sweep", example="sweep.trials=60")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--show", action="store_true", help="run nothing; show the results so far")
    how.add_argument(
        "--trial", type=int, metavar="NUMBER", help="run nothing; write the file of this trial as that of the best one"
    )
    how.add_argument(
        "--give-up",
        type=int,
        metavar="NUMBER",
        help="run nothing; mark this trial as failed, for a trial that fails at every start",
    )
    how.add_argument("--worker", action="store_true", help="run trials only in this process, as one process of a job")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    import shlex
    import sys

    from estimator_core.errors import ArgumentError
    from estimator_experiment.cli.json_text import json_text
    from estimator_experiment.cli.run_report import fitted, number, table
    from estimator_runs.sweep.driving import give_up, open_search, run_search, work
    from estimator_runs.sweep.results import best_trials, importances, write_winner
    from estimator_runs.workers import train_alone

    if args.worker:
        train_alone()
    look = args.show or args.trial is not None
    search = open_search(Path(args.file), Path(args.dir) if args.dir else None, args.settings, look=look)
    if args.give_up is not None:
        give_up(search, args.give_up)
        print(f"Trial {args.give_up} of {search.shelf.folder} counts as failed. Start the sweep again to continue.")
        return 0
    if args.worker:
        work(search)
        print(f"All trials of {search.shelf.folder} have ended. `estimator sweep` with --show prints the results.")
        return 0
    if not look:
        run_search(search)
    best, mattered = best_trials(search), importances(search)
    try:
        winner = str(write_winner(search, number=args.trial))
    except OSError as error:
        told = f"{error.filename} cannot be written: {error.strerror}."
        if not args.show:
            raise ArgumentError(told) from error
        print(told, file=sys.stderr)  # a user can read the sweep of another user
        winner = None
    states = [trial.state.name for trial in search.shelf.study().get_trials(deepcopy=False)]
    counts = {state: states.count(state) for state in sorted(set(states))}
    metrics = [one.metric for one in search.sweep.objectives]
    if args.json:
        rows = [{"number": trial.number, "values": trial.values, "params": trial.params} for trial in best]
        print(json_text({"trials": counts, "best": rows, "importances": mattered, "winner": winner}))
        return 0
    head = ("trial", *metrics, *search.space)
    print(f"{search.shelf.folder}: {', '.join(f'{count} {state.lower()}' for state, count in counts.items())}\n")
    rows = [
        (str(trial.number), *map(number, trial.values), *(number(trial.params[name]) for name in search.space))
        for trial in best
    ]
    print(fitted(rows, head))
    if mattered:
        print("\n" + table([(name, f"{share:.2f}") for name, share in mattered.items()], ("value", "importance")))
    if winner is not None:
        print(f"\nwinner  {winner}\nnext    estimator run {shlex.quote(winner)}")
    return 0
