"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_signatures.loading import load as load
from estimator_signatures.raw_signature import RawSignature as RawSignature
from estimator_signatures.receiving import client_transforms as client_transforms
from estimator_signatures.request import make_request as make_request
from estimator_signatures.supervised import SupervisedInputReceiver as SupervisedInputReceiver
from estimator_signatures.supervised import (
    build_supervised_input_receiver_fn_from_input_fn as build_supervised_input_receiver_fn_from_input_fn,
)
from estimator_signatures.writing import write_export as write_export

__version__: str
