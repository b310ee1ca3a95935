from estimator_exporters.exporters.best import BestExporter as BestExporter
from estimator_exporters.exporters.final import FinalExporter as FinalExporter
from estimator_exporters.exporters.latest import LatestExporter as LatestExporter
from estimator_exporters.exporters.step import StepExporter as StepExporter
from estimator_exporters.mlflow_flavor.write import log_mlflow_model as log_mlflow_model
from estimator_exporters.mlflow_flavor.write import save_mlflow_model as save_mlflow_model
from estimator_exporters.scoring.on_beam import BeamScorer as BeamScorer
from estimator_exporters.scoring.on_ray import RayScorer as RayScorer

__version__: str
