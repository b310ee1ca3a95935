"""Certificates of a server and, for mTLS, of its clients; a certificate that is renewed is taken over."""

from __future__ import annotations

import logging
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_exporters.serving.changes import changes

_log = logging.getLogger("estimator_exporters")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the files hold, PEM.

    Attributes:
        certificate: chain of the server.
        key: its private key.
        client_authority: of the certificates of clients; None: they show none.
    """

    certificate: bytes
    key: bytes
    client_authority: bytes | None


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

    def read(self) -> Parts:
        """The files.

        Raises:
            ArgumentError: they cannot be read, or are not a certificate with its key.
        """
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority = None if self.client_authority is None else self.client_authority.read_bytes()
            parts = Parts(
                certificate=self.certificate.read_bytes(), key=self.key.read_bytes(), client_authority=authority
            )
            _load(context, parts)
            if self.client_authority is not None:
                context.load_verify_locations(self.client_authority)
            return parts
        except (OSError, ssl.SSLError) as error:
            raise ArgumentError(f"The certificates cannot be used: {error}.") from error

    def changes(self) -> Callable[[], Parts | None]:
        """A function that returns the files where they have changed since its last call, and can be used."""
        files = (self.certificate, self.key, *(() if self.client_authority is None else (self.client_authority,)))
        changed = changes(files)

        def look() -> Parts | None:
            if not changed():
                return None
            try:
                return self.read()
            except ArgumentError as error:
                _log.error("%s The server keeps those that it has", error)
                return None

        return look

    def renewal(self, context: ssl.SSLContext) -> Callable[[], None]:
        """A function that puts a renewed certificate into a context, for connections from now on.

        A context keeps each authority of clients that it has had. So a changed one holds after a restart only.
        """
        changed = self.changes()

        def renew() -> None:
            parts = changed()
            if parts is not None:
                _load(context, parts)
                _log.info("Serving with the certificate that %s holds now", self.certificate)

        return renew


def _load(context: ssl.SSLContext, parts: Parts) -> None:
    """Puts a pair into a context from a copy of its own: a context that fails in between has no usable pair at all."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        for path, content in ((certificate, parts.certificate), (key, parts.key)):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(certificate, key)


def tls_from(certificate: Path | None, key: Path | None, client_authority: Path | None) -> Tls | None:
    """The encryption that a command line asks for, or None.

    Raises:
        ArgumentError: a part of it is missing, or a file cannot be read.
    """
    if certificate is None and key is None and client_authority is None:
        return None
    if certificate is None or key is None:
        raise ArgumentError("Encryption needs both --tls-cert and --tls-key.")
    tls = Tls(certificate=certificate, key=key, client_authority=client_authority)
    tls.read()
    return tls
