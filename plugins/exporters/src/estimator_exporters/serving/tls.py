"""Certificates of a server and, for mTLS, of its clients."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Tls:
    """The files of an encrypted connection.

    Attributes:
        certificate: chain of the server, PEM.
        key: its private key, PEM.
        client_authority: the authority whose certificates clients must show, PEM; None: they show none.
    """

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def arguments(self) -> Mapping[str, Any]:
        """The arguments of uvicorn."""
        found = {"ssl_certfile": str(self.certificate), "ssl_keyfile": str(self.key)}
        if self.client_authority is None:
            return found
        return {**found, "ssl_ca_certs": str(self.client_authority), "ssl_cert_reqs": int(ssl.CERT_REQUIRED)}


def tls_from(certificate: Path | None, key: Path | None, client_authority: Path | None) -> Tls | None:
    """The encryption that a command line asks for, or None.

    Raises:
        ArgumentError: a part of it is missing, or a file cannot be read.
    """
    if certificate is None and key is None and client_authority is None:
        return None
    if certificate is None or key is None:
        raise ArgumentError("Encryption needs both --tls-cert and --tls-key.")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if client_authority is not None:
            context.load_verify_locations(client_authority)
    except (OSError, ssl.SSLError) as error:
        raise ArgumentError(f"The certificates cannot be used: {error}.") from error
    return Tls(certificate=certificate, key=key, client_authority=client_authority)
