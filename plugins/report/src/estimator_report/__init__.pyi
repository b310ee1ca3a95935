"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_report.contract import ReportSection as ReportSection
from estimator_report.contract import ReportSource as ReportSource
from estimator_report.curve_counts import report_metrics as report_metrics
from estimator_report.page import build_page as build_page
from estimator_report.page import replace_page as replace_page
from estimator_report.page import write_report as write_report
from estimator_report.source import read_source as read_source

__version__: str
