"""Makes the generator read `Example:` of a docstring as code: Griffe knows the section under the name `Examples:`."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Renames the section in every docstring that is collected."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Renames the section of one object."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
