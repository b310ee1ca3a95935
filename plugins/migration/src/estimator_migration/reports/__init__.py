"""The findings of a check, for people, for programs and for browsers."""

from estimator_migration.reports.html_page import html_page
from estimator_migration.reports.program import Program, counts
from estimator_migration.reports.text import text_report

__all__ = ["Program", "counts", "html_page", "text_report"]
