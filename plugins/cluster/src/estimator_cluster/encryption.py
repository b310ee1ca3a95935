"""Mutual TLS of jax's service: whether it is asked for, and whether it can be had, before anybody connects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estimator_core.errors import BackendUnavailableError

#: The settings of jax without which there is no mutual TLS. A variable of the same name in capitals sets each.
NEEDED = ("jax_mtls_cert_file", "jax_mtls_key_file", "jax_mtls_ca_file")
OPTIONAL = ("jax_mtls_peer_uri_prefix", "jax_distributed_verify_secure_credentials")


def uses_mutual_tls(environ: Mapping[str, str], settings: Mapping[str, object], version: str) -> bool:
    """Whether the processes of a run prove who they are by certificates.

    Args:
        environ: of this process.
        settings: of jax; a jax that has no mutual TLS lacks those that ask for it.
        version: of jax, for messages.

    Raises:
        BackendUnavailableError: it is asked for, and the processes would connect without it, or not at all.

    Example:
        >>> uses_mutual_tls({}, {"jax_mtls_cert_file": None}, "0.12.0")
        False
        >>> uses_mutual_tls({"JAX_MTLS_CA_FILE": "ca.pem"}, {}, "0.10.2")
        Traceback (most recent call last):
        estimator_core.errors.BackendUnavailableError: JAX_MTLS_CA_FILE asks for mutual TLS, which jax 0.10.2 ...
    """
    asked = [name.upper() for name in (*NEEDED, *OPTIONAL) if environ.get(name.upper())]
    if NEEDED[0] not in settings:
        if asked:
            raise BackendUnavailableError(
                f"{asked[0]} asks for mutual TLS, which jax {version} does not have: the processes would connect "
                "without it. Install jax 0.12 or later, or unset the variable."
            )
        return False
    given = {name: settings[name] for name in NEEDED if settings.get(name)}
    if not given:
        if settings.get(OPTIONAL[1]):
            raise BackendUnavailableError(
                f"{OPTIONAL[1]} allows no connection without mutual TLS. Set {_names(NEEDED)}."
            )
        return False
    if missing := [name for name in NEEDED if name not in given]:
        raise BackendUnavailableError(
            f"Mutual TLS needs a certificate, its key, and those who sign: {_names(given)} "
            f"{'is' if len(given) == 1 else 'are'} set, {_names(missing)} {'is' if len(missing) == 1 else 'are'} not."
        )
    for name, path in given.items():
        try:
            with Path(str(path)).open("rb") as file:
                file.read(1)
        except OSError as error:
            raise BackendUnavailableError(f"{name.upper()}={path} cannot be read: {error.strerror}.") from error
    return True


def _names(settings: Mapping[str, object] | tuple[str, ...] | list[str]) -> str:
    return " and ".join(name.upper() for name in settings)
