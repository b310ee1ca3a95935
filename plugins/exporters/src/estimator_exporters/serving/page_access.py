"""Access control for pages without inference."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import Response

from estimator_exporters.serving.access import Access
from estimator_exporters.serving.refusals import RefusedError, explained

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEALTH = ("/v2/health/live", "/v2/health/ready")
# The path with the model name `stats` shows the statistics of all models, so it belongs to no model.
_MODEL = re.compile(r"/v[12]/models/(?!stats$)(.+?)(?:/versions/[^/]*)?(?:/(?:ready|config|stats|metadata))?$")


def guarded(access: Access, application: Application) -> Application:
    """Returns the application with an access rule. Health pages are public, because supervisors have no token."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _HEALTH:
            found = _MODEL.match(scope["path"])
            sent = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
            try:
                access(sent[0] if sent else None, found[1] if found else "")
            except RefusedError as refusal:
                refused = Response(explained(str(refusal)), status_code=refusal.status, headers=dict(refusal.headers))
                await refused(scope, receive, send)
                return
        await application(scope, receive, send)

    return check
