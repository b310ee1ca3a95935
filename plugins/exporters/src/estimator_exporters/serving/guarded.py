"""Pages without inference, only for those who may see them."""

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
# A model named `stats` would be shown where all statistics are: that path belongs to no model.
_MODEL = re.compile(r"/v[12]/models/(?!stats$)(.+?)(?:/versions/[^/]*)?(?:/(?:ready|config|stats|metadata))?$")


def guarded(access: Access, application: Application) -> Application:
    """The application with a rule before it; health is for everybody, since whoever restarts a server has no token."""

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
