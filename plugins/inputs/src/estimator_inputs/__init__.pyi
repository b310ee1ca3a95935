"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_inputs.array_record import array_record_input_fn as array_record_input_fn
from estimator_inputs.csv_input import csv_input_fn as csv_input_fn
from estimator_inputs.examples.features import FixedLenFeature as FixedLenFeature
from estimator_inputs.examples.features import FixedLenSequenceFeature as FixedLenSequenceFeature
from estimator_inputs.examples.features import VarLenFeature as VarLenFeature
from estimator_inputs.examples.message import example_class as example_class
from estimator_inputs.examples.parse import ParseExample as ParseExample
from estimator_inputs.examples.receiver import (
    build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn,
)
from estimator_inputs.jsonl_input import jsonl_input_fn as jsonl_input_fn
from estimator_inputs.keras_input import keras_input_fn as keras_input_fn
from estimator_inputs.pandas_input import pandas_input_fn as pandas_input_fn
from estimator_inputs.parquet_input import parquet_input_fn as parquet_input_fn
from estimator_inputs.reading.epochs import NoRowsError as NoRowsError
from estimator_inputs.reading.file_input import FileInput as FileInput
from estimator_inputs.reading.options import ReadOptions as ReadOptions
from estimator_inputs.schema.contract import FeatureSchema as FeatureSchema
from estimator_inputs.schema.contract import Schema as Schema
from estimator_inputs.schema.contract import Seen as Seen
from estimator_inputs.schema.learn import learn_schema as learn_schema
from estimator_inputs.schema.validate import Anomaly as Anomaly
from estimator_inputs.schema.validate import Limits as Limits
from estimator_inputs.schema.validate import Validation as Validation
from estimator_inputs.schema.validate import validate as validate
from estimator_inputs.table_input import table_input_fn as table_input_fn
from estimator_inputs.tfrecord.framing import write_tfrecord as write_tfrecord
from estimator_inputs.tfrecord.records import read_tfrecord as read_tfrecord
from estimator_inputs.tfrecord_input import make_batched_features_dataset as make_batched_features_dataset
from estimator_inputs.tfrecord_input import tfrecord_input_fn as tfrecord_input_fn

__version__: str
