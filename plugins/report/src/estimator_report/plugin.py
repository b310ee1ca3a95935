"""The declarations of estimator-report for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component, Kind

ESTIMATOR_PLUGIN_API = (1, 1)

_SECTIONS = (
    ("run", "RunSection", "Command, settings and versions of the run, and how it ended."),
    ("training", "TrainingSection", "The curves of the training."),
    ("goodput", "GoodputSection", "Where the time of the training went."),
    ("checkpoints", "CheckpointSection", "Each metric from checkpoint to checkpoint."),
    ("slices", "SliceSection", "Slices of the newest checkpoint, the worst first, and their changes."),
    ("curves", "CurveSection", "ROC, precision and recall, calibration and confusion."),
    ("kept", "KeptSection", "Checkpoints and exports on disk."),
)


def estimator_kinds() -> Sequence[Kind]:
    """Returns the kind of sections of the page."""
    return [
        Kind(
            name="report_section",
            title="report sections",
            contract="estimator_report:ReportSection",
            target="a class or function whose call without arguments returns a ReportSection",
            suite="estimator_report.section_suite:ReportSectionSuite",
            scaffold="estimator_report:scaffold",
        )
    ]


def estimator_components() -> Sequence[Component]:
    """Returns the sections about a run and its evaluations."""
    return [
        Component(
            kind="report_section", name=name, target=f"estimator_report.sections.{name}:{target}", summary=summary
        )
        for name, target, summary in _SECTIONS
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator report`."""
    return [
        Command(
            name="report",
            target="estimator_report.cli.report",
            summary="Write one HTML page about the run of a model_dir and its evaluations.",
        )
    ]
