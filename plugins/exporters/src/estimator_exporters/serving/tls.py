"""The certificates of a server and, for mTLS, of its clients. Renewed certificates are loaded during operation."""

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
    """The content of the certificate files, in PEM.

    Attributes:
        certificate: the certificate chain of the server.
        key: the private key of the server.
        client_authority: the authority that signs the certificates of clients. None: clients need no certificate.
    """

    certificate: bytes
    key: bytes
    client_authority: bytes | None


@dataclass(frozen=True, kw_only=True)
class Tls:
    """The files of an encrypted connection.

    Attributes:
        certificate: the path of the certificate chain of the server, in PEM.
        key: the path of the private key of the server, in PEM.
        client_authority: the path of the authority that signs the certificates of clients, in PEM. None: clients need
            none.
    """

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def arguments(self) -> Mapping[str, Any]:
        """Returns the arguments for uvicorn."""
        found = {"ssl_certfile": str(self.certificate), "ssl_keyfile": str(self.key)}
        if self.client_authority is None:
            return found
        return {**found, "ssl_ca_certs": str(self.client_authority), "ssl_cert_reqs": int(ssl.CERT_REQUIRED)}

    def read(self) -> Parts:
        """Reads the files.

        Raises:
            ArgumentError: the files cannot be read, or are not a certificate with its key.
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
        """Returns a function that returns the files if they changed since its last call and are valid."""
        files = (self.certificate, self.key, *(() if self.client_authority is None else (self.client_authority,)))
        changed = changes(files)

        def look() -> Parts | None:
            if not changed():
                return None
            try:
                return self.read()
            except ArgumentError as error:
                _log.error("%s The server keeps the previous certificates", error)
                return None

        return look

    def renewal(self, context: ssl.SSLContext) -> Callable[[], None]:
        """Returns a function that loads a renewed certificate into a context, for later connections.

        A context keeps every client authority that it has loaded. A changed authority therefore takes effect after a
        restart.
        """
        changed = self.changes()

        def renew() -> None:
            parts = changed()
            if parts is not None:
                _load(context, parts)
                _log.info("Serving with the new certificate in %s", self.certificate)

        return renew


def _load(context: ssl.SSLContext, parts: Parts) -> None:
    """Loads a certificate and key from private copies. A context that fails between the two has no usable pair."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        for path, content in ((certificate, parts.certificate), (key, parts.key)):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(certificate, key)


def tls_from(certificate: Path | None, key: Path | None, client_authority: Path | None) -> Tls | None:
    """Returns the encryption that a command line requests, or None.

    Raises:
        ArgumentError: an option is missing, or a file cannot be read.
    """
    if certificate is None and key is None and client_authority is None:
        return None
    if certificate is None or key is None:
        raise ArgumentError("Encryption needs both --tls-cert and --tls-key.")
    tls = Tls(certificate=certificate, key=key, client_authority=client_authority)
    tls.read()
    return tls
