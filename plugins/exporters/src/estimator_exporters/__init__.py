"""Exporters, export formats and serving for estimator-core."""

from estimator_exporters.exporters.best import BestExporter as BestExporter
from estimator_exporters.exporters.final import FinalExporter as FinalExporter
from estimator_exporters.exporters.latest import LatestExporter as LatestExporter

__version__ = "0.1.0"
