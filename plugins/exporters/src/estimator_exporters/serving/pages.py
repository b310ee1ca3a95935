"""Pages without inference: an answer or a refusal."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.responses import Response

from estimator_exporters.serving.refusals import RefusedError, explained


async def answered(answer: Awaitable[Response]) -> Response:
    """Returns the answer, or the response of a refusal."""
    try:
        return await answer
    except RefusedError as refusal:
        return Response(explained(str(refusal)), status_code=refusal.status, headers=refusal.headers)
