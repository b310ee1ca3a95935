"""A decoded request of any form, and the function that writes its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.protocol import build_response, parse_request

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to a model.

    Attributes:
        name: the name of the model.
        inputs: the inputs, as arrays by name.
        answer: `(version, outputs) -> (body, headers)`.
    """

    name: str
    inputs: Arrays
    answer: Callable[[str, Arrays], tuple[bytes, Mapping[str, str]]]


class Form(Protocol):
    """Reads the requests of a protocol."""

    def __call__(
        self,
        body: bytes | bytearray,
        header_length: str | None,
        find: Callable[[str], ServedModel],
        *,
        values: int,
        charge: Callable[[int], None],
    ) -> Call:
        """Returns the request that a body contains.

        Args:
            body: the body of the request.
            header_length: the header of the binary extension, or None if it was not sent.
            find: returns a model by name.
            values: the largest number of values.
            charge: called with the bytes of memory that decoding needs.

        Raises:
            RefusedError: the request is invalid.
        """
        ...


def open_inference(name: str) -> Form:
    """Returns the form of `POST /v2/models/NAME/infer`."""

    def read(
        body: bytes | bytearray,
        header_length: str | None,
        find: Callable[[str], ServedModel],
        *,
        values: int,
        charge: Callable[[int], None],
    ) -> Call:
        request = parse_request(body, header_length, values=values, charge=charge)

        def answer(version: str, outputs: Arrays) -> tuple[bytes, Mapping[str, str]]:
            return build_response(request, name, version, outputs)

        return Call(name=name, inputs=request.inputs, answer=answer)

    return read
