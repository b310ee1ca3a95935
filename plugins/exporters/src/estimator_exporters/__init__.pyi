from estimator_exporters.exporters.best import BestExporter as BestExporter
from estimator_exporters.exporters.final import FinalExporter as FinalExporter
from estimator_exporters.exporters.latest import LatestExporter as LatestExporter
from estimator_exporters.exporters.step import StepExporter as StepExporter

__version__: str
