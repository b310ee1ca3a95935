"""The names of `estimator_core.testing`, typed; they live in the package estimator-testing."""

from estimator_testing import BackendSuite as BackendSuite
from estimator_testing import ExporterSuite as ExporterSuite
from estimator_testing import ExportFormatSuite as ExportFormatSuite
from estimator_testing import FakeRun as FakeRun
from estimator_testing import FaultInjector as FaultInjector
from estimator_testing import HeadSuite as HeadSuite
from estimator_testing import HookSuite as HookSuite
from estimator_testing import HostTransformSuite as HostTransformSuite
from estimator_testing import InjectedError as InjectedError
from estimator_testing import InputSuite as InputSuite
from estimator_testing import ModelSuite as ModelSuite
from estimator_testing import ModuleAdapterSuite as ModuleAdapterSuite
from estimator_testing import ModuleRunner as ModuleRunner
from estimator_testing import PluginSuite as PluginSuite
from estimator_testing import Suite as Suite
from estimator_testing import array_format as array_format
from estimator_testing import counting_traces as counting_traces
from estimator_testing import drive as drive
from estimator_testing import failing_input_fn as failing_input_fn
from estimator_testing import overrides as overrides
from estimator_testing import run_with_devices as run_with_devices
from estimator_testing import tiny_estimator as tiny_estimator
from estimator_testing import tiny_input_fn as tiny_input_fn
from estimator_testing import tiny_model_fn as tiny_model_fn
from estimator_testing import tiny_receiver_fn as tiny_receiver_fn
