"""The entry of a pack in a manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The end of the name of a pack.
PACK_SUFFIX = ".pack"
#: The number of bytes at the end of a pack that locate its index.
FOOTER_BYTES = 32
#: The largest index in bytes that is read, including the footer.
MAX_INDEX_BYTES = 64 << 20
#: What to do about a damaged checkpoint.
USE_ANOTHER = "Use an older checkpoint; delete this one or restore it from a copy."
_NAME = re.compile(r"(arrays|base)-(0|[1-9][0-9]{0,8})\.pack")
_MAX_SIZE = 1 << 62


@dataclass(frozen=True, kw_only=True)
class PackEntry:
    """The entry of a pack in the manifest.

    Args:
        name: the name of the object, next to the manifest.
        bytes: the size in bytes.
        index: the number of bytes of index and footer, at the end.
        sha256: the digest of the index and the footer, whose checksums cover all other bytes.
    """

    name: str
    bytes: int
    index: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as a JSON object."""
        return {"name": self.name, "bytes": self.bytes, "index": self.index, "sha256": self.sha256}

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> PackEntry:
        """Reads an entry that `to_json` returned.

        Raises:
            ValueError: the entry is not valid.
        """
        found = PackEntry(**entry)
        if not (_NAME.fullmatch(found.name) and is_size(found.bytes) and is_size(found.index)):
            raise ValueError(f"{str(entry)[:200]} is not a pack")
        if not FOOTER_BYTES < found.index <= min(found.bytes, MAX_INDEX_BYTES) or not isinstance(found.sha256, str):
            raise ValueError(f"{str(entry)[:200]} has an impossible index")
        return found


def pack_name(process: int) -> str:
    """Returns the name of the pack that a process writes."""
    return f"arrays-{process}{PACK_SUFFIX}"


def base_name(process: int) -> str:
    """Returns the name of the pack of a full save, to which later incremental saves of a process apply."""
    return f"base-{process}{PACK_SUFFIX}"


def is_base(name: str) -> bool:
    """Returns whether a pack is the base of others."""
    return name.startswith("base-")


def is_size(value: object) -> bool:
    """Returns whether a value from JSON can be a number of bytes or elements."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_SIZE
