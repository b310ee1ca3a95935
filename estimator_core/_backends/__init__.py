"""Devices: the Backend contract, the CPU backend, and the placement of arrays."""

from estimator_core._backends.contract import Available as Available
from estimator_core._backends.contract import Backend as Backend
from estimator_core._backends.contract import Unavailable as Unavailable
from estimator_core._backends.devices import Devices as Devices
from estimator_core._backends.devices import select_backend as select_backend
from estimator_core._backends.placement import Placement as Placement
from estimator_core._backends.placement import place as place
