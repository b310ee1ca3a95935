"""Everything contract 1.0 knows, used once. Frozen: see README.md."""

from estimator_core.plugins import Command, Component, Option, hookimpl

ESTIMATOR_PLUGIN_API = (1, 0)

KINDS = ("head", "hook", "exporter", "format", "backend", "model", "adapter", "input", "transform")
EVENTS = []


def estimator_components():
    return [
        Component(kind=kind, name="frozen", target=f"frozen_1_0.components:{kind.title()}", summary=f"A frozen {kind}.")
        for kind in KINDS
    ]


def estimator_commands():
    return [Command(name="frozen", target="frozen_1_0.command", summary="Print the word given.")]


def estimator_options():
    return [
        Option(name="text", type=str, default="default", help="A text."),
        Option(name="number", type=int, default=1, help="A number."),
        Option(name="share", type=float, default=0.5, help="A share."),
        Option(name="flag", type=bool, default=False, help="A switch."),
    ]


@hookimpl(trylast=True)
def estimator_run_hooks(run, options):
    from frozen_1_0.components import Hook

    return [Hook(text=options["text"])] if run.mode == "train" else []


def estimator_run_start(run, options):
    EVENTS.append(("run_start", run.mode, options))


def estimator_run_end(run, error, options):
    EVENTS.append(("run_end", run.step, error, options))


def estimator_checkpoint_saved(run, step, path, options):
    EVENTS.append(("checkpoint_saved", step, path, options))


def estimator_evaluation_finished(run, metrics, options):
    EVENTS.append(("evaluation_finished", run.name, metrics["loss"], options))


def estimator_export_written(estimator, path, format_name, options):
    EVENTS.append(("export_written", path, format_name, options))


@hookimpl(optionalhook=True)
def estimator_of_a_later_contract(something):
    raise AssertionError("no contract 1.x may call this with contract 1.0 stated")
