"""Signed statements about the files of a release: `provenance.py make|verify FOLDER`.

The statement is in-toto's, with the predicate of SLSA: the digest of every file, their commit, and how they were built.
`securesystemslib` signs and verifies its envelope.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "provenance.intoto.json"
PUBLIC_KEY = "release-key.pub.json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of a release by name, without the statement and its key."""
    files = sorted(path for path in folder.iterdir() if path.name not in {FILE, PUBLIC_KEY})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def statement(found: Mapping[str, str], *, repository: str, commit: str, epoch: str) -> dict[str, Any]:
    """Returns the statement about files by their digests.

    Args:
        found: the SHA-256 of each file by name.
        repository: the address of the repository.
        commit: the full hash of the commit of the build.
        epoch: the SOURCE_DATE_EPOCH of the build, in seconds.
    """
    definition = {
        "buildType": f"{repository}/blob/main/docs/decisions/0036-release-files.md",
        "externalParameters": {"repository": repository, "commit": commit, "SOURCE_DATE_EPOCH": epoch},
        "resolvedDependencies": [{"uri": f"git+{repository}@{commit}", "digest": {"gitCommit": commit}}],
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in found.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": f"{repository}/blob/main/.ci/publishing.py"}},
        },
    }


def faults(told: Mapping[str, Any], found: Mapping[str, str]) -> list[str]:
    """Returns the differences between a statement and the files of the folder."""
    named = {subject["name"]: subject["digest"]["sha256"] for subject in told["subject"]}
    wrong = [f"{name} is missing" for name in sorted(named.keys() - found.keys())]
    wrong += [f"{name} is not in the statement" for name in sorted(found.keys() - named.keys())]
    return wrong + [f"{name} was altered" for name in sorted(named.keys() & found.keys()) if named[name] != found[name]]


def make(folder: Path, key: Path, told: Mapping[str, Any]) -> None:
    """Writes the signed statement and the public key. A missing private key is created first."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    if not key.exists():
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        key.touch(mode=0o600)
        key.write_bytes(Ed25519PrivateKey.generate().private_bytes(*form))
    signer = CryptoSigner(serialization.load_pem_private_key(key.read_bytes(), None))
    envelope = Envelope(json.dumps(told, sort_keys=True).encode(), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    (folder / FILE).write_text(json.dumps(envelope.to_dict(), indent=1) + "\n", encoding="utf-8")
    public = {"keyid": signer.public_key.keyid, **signer.public_key.to_dict()}
    (folder / PUBLIC_KEY).write_text(json.dumps(public, indent=1) + "\n", encoding="utf-8")


def verified(folder: Path, public: Path) -> Mapping[str, Any]:
    """Returns the statement in a folder. Raises unless the key signed it."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    data = json.loads(public.read_text(encoding="utf-8"))
    key = SSlibKey.from_dict(data.pop("keyid"), data)
    envelope = Envelope.from_dict(json.loads((folder / FILE).read_text(encoding="utf-8")))
    envelope.verify([key], 1)
    return json.loads(envelope.payload)


def main() -> int:
    """Makes or verifies a statement. Returns 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("make", "verify"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", type=Path, required=True, help="make: private key (PEM); verify: public key (JSON)")
    for name in ("repository", "commit", "epoch"):
        parser.add_argument(f"--{name}", default="", help="make: what the statement says")
    given = parser.parse_args()
    found = digests(given.folder)
    if given.what == "make":
        told = statement(found, repository=given.repository, commit=given.commit, epoch=given.epoch)
        make(given.folder, given.key, told)
        return 0
    wrong = faults(verified(given.folder, given.key), found)
    print(*wrong, f"{len(found)} files, {len(wrong)} faults", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
