"""Checks before any connection whether mutual TLS of jax's service is requested, and whether it is available."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from estimator_core.errors import BackendUnavailableError

#: The settings of jax that mutual TLS requires. Each can be set by a variable of the same name in capitals.
NEEDED = ("jax_mtls_cert_file", "jax_mtls_key_file", "jax_mtls_ca_file")
#: Settings that have no meaning without the required ones.
PREFIX, REQUIRED = "jax_mtls_peer_uri_prefix", "jax_distributed_verify_secure_credentials"
_OFF = ("", "0", "false", "f", "no", "n", "off")


def uses_mutual_tls(environ: Mapping[str, str], settings: Mapping[str, object], version: str) -> bool:
    """Returns whether the processes of a run identify themselves by certificates.

    Args:
        environ: the environment of this process.
        settings: the settings of jax. A jax without mutual TLS lacks the settings for it.
        version: the version of jax, for messages.

    Raises:
        BackendUnavailableError: mutual TLS is requested, but the processes would connect without it, or not at all.

    Example:
        >>> uses_mutual_tls({}, {"jax_mtls_cert_file": None}, "0.12.0")
        False
        >>> uses_mutual_tls({"JAX_MTLS_CA_FILE": "ca.pem"}, {}, "0.10.2")
        Traceback (most recent call last):
        estimator_core.errors.BackendUnavailableError: JAX_MTLS_CA_FILE asks for mutual TLS, which jax 0.10.2 ...
    """
    asked = [name.upper() for name in (*NEEDED, PREFIX, REQUIRED) if environ.get(name.upper(), "").lower() not in _OFF]
    if NEEDED[0] not in settings:
        if asked:
            raise BackendUnavailableError(
                f"{asked[0]} asks for mutual TLS, which jax {version} does not have: the processes would connect "
                "without it. Install jax 0.12 or later, or unset the variable."
            )
        return False
    given = {name: settings[name] for name in NEEDED if settings.get(name)}
    if not given:
        for name in (PREFIX, REQUIRED):
            if settings.get(name):
                raise BackendUnavailableError(f"{name.upper()} needs mutual TLS. Set {_names(NEEDED)}.")
        return False
    if missing := [name for name in NEEDED if name not in given]:
        raise BackendUnavailableError(
            f"Mutual TLS needs a certificate, its key, and the signing authorities: {_names(given)} "
            f"{'is' if len(given) == 1 else 'are'} set, {_names(missing)} {'is' if len(missing) == 1 else 'are'} not."
        )
    _load(*(str(given[name]) for name in NEEDED))
    return True


def _load(certificate: str, key: str, authority: str) -> None:
    """Loads the files like a server. With a damaged file, jax would wait for the other processes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(authority)
    except OSError as error:
        raise BackendUnavailableError(f"JAX_MTLS_CA_FILE={authority} cannot be used: {error}.") from error
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # raises instead of a prompt
    except OSError as error:
        raise BackendUnavailableError(
            f"JAX_MTLS_CERT_FILE={certificate} with JAX_MTLS_KEY_FILE={key} cannot be used: {error}."
        ) from error


def _names(settings: Mapping[str, object] | tuple[str, ...] | list[str]) -> str:
    return " and ".join(name.upper() for name in settings)
