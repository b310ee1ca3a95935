"""Helpers of the rules of differences.py, which read traces: the owner of a call, and lines that belong together."""

from dataclasses import dataclass


def phase(line):
    """Returns the method that a line of a trace describes, such as ``after_run``."""
    return line.partition(".")[2].partition("(")[0]


def owner(line):
    """Returns the hook, listener or exporter that a line of a trace describes."""
    return line.partition(".")[0]


@dataclass(frozen=True)
class Cast:
    """The participants of a call: names in the order of the calls."""

    listeners: tuple
    users: tuple
    chief: tuple
    training: tuple
    evaluation: tuple

    @property
    def hooks(self):
        """The hooks of the training, in the order of their calls."""
        return self.chief + self.users + self.training


def cast(scenario, call):
    """Returns the cast of one call of a scenario."""
    params = {**scenario.get("params", {}), **call.get("params", {})}

    def names(specs):
        return tuple(spec["name"] for spec in specs or () if "name" in spec)

    trains = call["call"] in ("train", "train_and_evaluate")
    users = names(call.get("hooks"))
    spec_hooks = "prediction_hooks" if call["call"] == "predict" else "evaluation_hooks"
    return Cast(
        listeners=names(call.get("listeners")),
        users=users if trains else (),
        chief=names(params.get("training_chief_hooks")) if trains else (),
        training=names(params.get("training_hooks")) if trains else (),
        evaluation=(names(call.get("eval_hooks")) if trains else users) + names(params.get(spec_hooks)),
    )


def unmatched_before_run(trace, hooks):
    """Returns the indices of each ``before_run`` of ``hooks`` without a later ``after_run`` of the same step."""
    pending, unmatched = [], []
    for index, line in enumerate(trace):
        if owner(line) not in hooks:
            continue
        if phase(line) == "before_run":
            pending.append(index)
        elif phase(line) == "after_run":
            pending = []
        elif pending:
            unmatched += pending
            pending = []
    return unmatched + pending


def without(trace, indices):
    """Returns the trace without some of its lines."""
    dropped = set(indices)
    return [line for index, line in enumerate(trace) if index not in dropped]


def save_blocks(trace, who):
    """Returns ``(start, stop)`` of the blocks in which listeners save, or evaluations and exports run."""

    def inside(line):
        return (
            (owner(line) in who.listeners and phase(line) in ("before_save", "after_save"))
            or line == "evaluate.input_fn"
            or owner(line) in who.evaluation
            or phase(line) == "export"
        )

    blocks, start = [], None
    for index, line in enumerate([*trace, ""]):
        if start is not None and (not inside(line) or _begins_anew(line, trace[start:index])):
            blocks.append((start, index))
            start = None
        if inside(line) and start is None:
            start = index
    return blocks


def _begins_anew(line, block):
    """Returns whether a save or an evaluation begins, although the block before it reaches this line."""
    if phase(line) == "before_save":
        return any(phase(before) != "before_save" for before in block)
    return line == "evaluate.input_fn" and line in block


def steps_made(trace, hooks):
    """Returns the number of steps whose end the hooks of a run have seen."""
    ended = [owner(line) for line in trace if phase(line) == "after_run" and owner(line) in hooks]
    return max((ended.count(name) for name in set(ended)), default=0)
