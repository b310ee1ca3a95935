"""A decoded request of any form, and how its answer is written."""

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
    """A request.

    Attributes:
        name: of the model.
        inputs: arrays by name.
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
        """A request from its body.

        Args:
            body: of the request.
            header_length: the header of the binary extension; None: not sent.
            find: returns a model by name.
            values: greatest number of values.
            charge: called with the bytes of memory that decoding will take.

        Raises:
            RefusedError: it is wrong.
        """
        ...


def open_inference(name: str) -> Form:
    """The form of `POST /v2/models/NAME/infer`."""

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
