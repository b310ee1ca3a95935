"""The answer of a store, and the matching error of the core."""

from __future__ import annotations

import re
from dataclasses import dataclass

from estimator_core.storage import (
    ObjectExistsError,
    ObjectMissingError,
    OutcomeUnknownError,
    ShortReadError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageGoneError,
)

_GONE = {"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "FilesystemNotFound"}
_FULL = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "StorageQuotaExceeded"}
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
_NOT_ACCEPTED = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthenticationFailed",
    "NoAuthenticationInformation",
}
#: The metadata service of cloud machines. Clients look there last for credentials, and other machines cannot reach it.
_METADATA = re.compile(r"//(169\.254\.(169\.254|170\.\d+)|metadata\.google\.internal)[:/]")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_KEY",
    "abfss": "AZURE_STORAGE_ACCOUNT_KEY",
}
#: Codes that mean that the store did not execute the request, because of another request for the same key.
CONFLICTS = {"ConditionalRequestConflict", "OperationAborted"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The known parts of an answer that was not a success.

    Args:
        status: the HTTP status; 0 without an answer.
        code: the error code of the store; may be empty.
        text: the text of the store, in one line without secrets.
    """

    status: int
    code: str
    text: str

    @property
    def is_sure(self) -> bool:
        """Whether the request was certainly not executed: it was refused, and not lost, throttled or failed."""
        return self.without_credentials or (400 <= self.status < 500 and self.status not in (408, 429))

    @property
    def without_credentials(self) -> bool:
        """Whether the store was not called, because the metadata service, the last source, had no credentials."""
        return _METADATA.search(self.text) is not None

    def describe(self) -> str:
        """Returns the answer for messages: `403 AccessDenied: Access Denied`."""
        number = str(self.status) if self.status else ""
        return ": ".join(part for part in (f"{number} {self.code}".strip(), self.text) if part)


def one_line(text: str) -> str:
    r"""Returns the first line of a text, without the queries of URLs (they hold signatures) and user names in them.

    Example:
        >>> one_line("GET https://me:pw@host/a?sig=abc failed\nDebug: ...")
        'GET https://host/a failed'
    """
    first = text.strip().partition("\n")[0]
    return re.sub(r"(?<=://)[^/@\s]*@", "", re.sub(r"(?<=\S)\?[^\s)'\"]*", "", first))[:300]


def refusal(place: str, doing: str, permission: str, answer: Answer) -> StorageError:
    """Returns the error for an answer.

    Args:
        place: URL and key.
        doing: the requested action, such as `read`.
        permission: the permission that the credentials need for it.
        answer: the answer of the store.
    """
    said = answer.describe()
    if answer.without_credentials:
        named = _CREDENTIALS.get(place.partition(":")[0], "environment variables")
        passing = answer.status in (0, 408, 429) or answer.status >= 500  # in a cloud it may answer later
        return (StorageError if passing else StorageDeniedError)(
            f"{place} could not be {doing}: no credentials were found. The metadata service of a cloud's machines was "
            f"asked last ({said}). Elsewhere, set them where the provider's own tools look, such as {named}."
        )
    if answer.code == "NoSuchUpload":  # completed by an attempt whose answer was lost, or removed by a lifecycle rule
        return OutcomeUnknownError(f"{place}: it is unknown whether it was written ({said}). Write it again.")
    if answer.code in _GONE or (answer.status == 404 and doing in ("written", "listed")):
        return StorageGoneError(f"{place}: the bucket or container does not exist ({said}). Create it first.")
    if answer.code in _FULL or answer.status == 507:
        return StorageFullError(f"{place}: there is no room left ({said}).")
    if answer.code in _ELSEWHERE or answer.status == 301:
        return StorageError(f"{place}: the bucket is in another region ({said}). Set AWS_REGION to it.")
    if answer.status == 404:
        return ObjectMissingError(f"{place}: there is no such object.")
    if answer.status == 416:
        return ShortReadError(f"{place} ends before the requested bytes.")
    if answer.code in _NOT_ACCEPTED or answer.status == 401:
        return StorageDeniedError(f"{place}: the store does not accept the credentials ({said}).")
    if answer.status == 403:
        return StorageDeniedError(f"{place} may not be {doing} ({said}). The credentials need {permission}.")
    if not answer.status:
        return StorageError(f"{place} could not be {doing}: none of the attempts was answered ({said}).")
    return StorageError(f"{place} could not be {doing}: the store answered {said}.")


def refusal_of_new(place: str, permission: str, answer: Answer) -> StorageError:
    """Returns the error for an answer to the one attempt to create an object."""
    if answer.status in (409, 412) and answer.code not in CONFLICTS:
        return ObjectExistsError(f"{place} exists already.")
    if answer.is_sure and answer.code not in CONFLICTS:
        return refusal(place, "written", permission, answer)
    return OutcomeUnknownError(
        f"{place}: it is unknown whether it was written ({answer.describe()}). Read it, or write it again."
    )
