"""Tests of the errors for a store's answers: their class, their message, and the number of requests."""

from datetime import timedelta

import pytest

from estimator_core.storage import (
    ObjectExistsError,
    ObjectMissingError,
    OutcomeUnknownError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
    StorageGoneError,
)
from estimator_storage import open_s3, over_obstore
from estimator_storage.store_errors import Answer, refusal, refusal_of_new
from plugins.storage.tests import emulators
from plugins.storage.tests.man_in_the_middle import LOST, man_in_the_middle

BUCKET = "answers"
SLOW = (503, "SlowDown", "Please reduce your request rate.")


@pytest.fixture
def middle(s3):
    emulators.s3_client().create_bucket(Bucket=BUCKET)
    with man_in_the_middle(s3) as middle:
        yield middle


@pytest.fixture
def storage(middle, tmp_path):
    storage = open_s3(f"s3://{BUCKET}/{tmp_path.name}", options={"s3_endpoint": middle.url})
    storage.put("there", b"12345")
    middle.seen.clear()
    return storage


CALLS = {
    "put": lambda storage: storage.put("new", b"x"),
    "put_stream": lambda storage: storage.put_stream("new", [bytes(9 << 20)], size=9 << 20),
    "get": lambda storage: storage.get("there"),
    "get_ranges": lambda storage: storage.get_ranges("there", [(1, 3)]),
    "list": lambda storage: list(storage.list("")),
    "delete": lambda storage: storage.delete(["there"]),
    "now": lambda storage: storage.now(),
}


@pytest.mark.parametrize("answer", [SLOW, (500, "InternalError", ""), (429, "TooManyRequests", "")], ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_throttling_and_faults_of_the_server_are_waited_out(storage, middle, call, answer):
    middle.script += [answer, answer]
    CALLS[call](storage)
    assert middle.script == []
    assert len(middle.seen) >= 3
    assert middle.seen[0] == middle.seen[1] == middle.seen[2]


def test_the_time_ends_the_tries_and_not_their_number(middle, monkeypatch, tmp_path):
    """A store that is away for a minute does not end a run, however short the random pauses are."""
    soon = timedelta(milliseconds=1)
    monkeypatch.setitem(over_obstore.RETRIES["backoff"], "init_backoff", soon)
    monkeypatch.setitem(over_obstore.RETRIES["backoff"], "max_backoff", soon)
    storage = open_s3(f"s3://{BUCKET}/{tmp_path.name}", options={"s3_endpoint": middle.url})
    middle.script += [SLOW] * 30
    storage.put("new", b"x")
    assert len(middle.seen) == 31


@pytest.mark.parametrize("answer", [SLOW, (500, "InternalError", ""), (429, "TooManyRequests", "")], ids=str)
def test_a_conditional_write_is_tried_once(storage, middle, answer):
    middle.script += [answer]
    with pytest.raises(OutcomeUnknownError, match=rf"it is unknown whether it was written \({answer[0]} {answer[1]}"):
        storage.put_new("new", b"x")
    assert len(middle.seen) == 1
    storage.put_new("new", b"x")


def test_a_conflict_with_another_writer_is_asked_again(storage, middle):
    """S3 answers 409 while another conditional write of the key is in progress, so the outcome is still open."""
    conflict = (
        409,
        "ConditionalRequestConflict",
        "The conditional request cannot succeed due to a conflicting operation",
    )
    middle.script += [conflict] * 2
    storage.put_new("new", b"x")
    assert len(middle.seen) == 3
    middle.script += [conflict, None]
    with pytest.raises(ObjectExistsError):
        storage.put_new("new", b"y")
    middle.script += [conflict] * 7
    with pytest.raises(OutcomeUnknownError):
        storage.put_new("newer", b"y")


def test_an_upload_whose_last_answer_is_lost_is_written(storage, middle):
    """The store forgets an upload that is complete, so the second attempt to complete it is refused."""
    large = [b"x" * (9 << 20)]
    forgotten = (404, "NoSuchUpload", "The specified upload does not exist.")
    storage.put("new", bytes(9 << 20))
    for key in ("new", "newer"):
        middle.script += [None] * 4 + [LOST, forgotten]  # a look at the key, the beginning, two parts, twice the end
        storage.put_stream(key, iter(large), size=9 << 20)
        assert storage.get(key) == large[0]
        assert middle.script == []


def test_an_upload_that_the_store_has_removed_is_not_a_missing_bucket(storage, middle):
    storage.put("new", bytes(9 << 20))
    middle.script += [None] * 4 + [(404, "NoSuchUpload", "The specified upload does not exist.")]
    with pytest.raises(OutcomeUnknownError, match=r"new: it is unknown whether it was written \(404 NoSuchUpload"):
        storage.put_stream("new", [b"x" * (9 << 20)], size=9 << 20)
    assert storage.get("new") == bytes(9 << 20)


DENIED = "User: arn:aws:iam::1:user/u is not authorized to perform: s3:PutObject because no policy allows it"


@pytest.mark.parametrize(
    ("call", "answer", "error", "text"),
    [
        ("put_new", (403, "AccessDenied", DENIED), StorageDeniedError, "may not be written .* authorized"),
        ("put", (403, "AccessDenied", ""), StorageDeniedError, "The credentials need s3:PutObject"),
        ("put_stream", (403, "AccessDenied", ""), StorageDeniedError, "The credentials need s3:PutObject"),
        ("get", (403, "AccessDenied", ""), StorageDeniedError, "may not be read .* need s3:GetObject .* s3:ListBucket"),
        ("get_ranges", (403, "AccessDenied", ""), StorageDeniedError, "need s3:GetObject"),
        ("list", (403, "AccessDenied", ""), StorageDeniedError, "may not be listed .* need s3:ListBucket"),
        ("delete", (403, "AccessDenied", ""), StorageDeniedError, "may not be deleted .* need s3:DeleteObject"),
        ("put", (403, "InvalidAccessKeyId", ""), StorageDeniedError, "does not accept the credentials"),
        ("put_new", (400, "ExpiredToken", ""), StorageDeniedError, "does not accept the credentials"),
        ("put_new", (404, "NoSuchBucket", ""), StorageGoneError, "the bucket or container does not exist"),
        ("get", (404, "NoSuchKey", ""), ObjectMissingError, "there: there is no such object"),
        ("put", (507, "InsufficientStorage", ""), StorageFullError, "no room left"),
        ("put_new", (403, "QuotaExceeded", ""), StorageFullError, "no room left"),
        ("get", (400, "AuthorizationHeaderMalformed", "not 'eu'"), StorageError, "another region .*AWS_REGION"),
        ("get", (400, "InvalidRequest", "Odd."), StorageError, "the store answered 400 InvalidRequest: Odd"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_missing(middle, monkeypatch, tmp_path, call, answer, error, text):
    monkeypatch.setattr(over_obstore, "RETRIES", over_obstore.ONCE)  # 507 is retried, as any fault of a server
    storage = open_s3(f"s3://{BUCKET}/{tmp_path.name}", options={"s3_endpoint": middle.url})
    calls = {**CALLS, "put_new": lambda storage: storage.put_new("new", b"x")}
    middle.script += [answer] * (2 if call == "put_stream" else 1)  # a large write looks at the key before
    with pytest.raises(error, match=text) as caught:
        calls[call](storage)
    assert type(caught.value) is error
    assert storage.url in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__, "what obstore raised holds addresses, and would be printed"


def test_a_server_that_is_not_there_is_no_outcome(storage, middle, monkeypatch):
    monkeypatch.setattr(over_obstore, "RETRIES", over_obstore.ONCE)
    nobody = open_s3(f"s3://{BUCKET}/run", options={"s3_endpoint": "http://127.0.0.1:9"})
    with pytest.raises(OutcomeUnknownError):
        nobody.put_new("new", b"x")
    with pytest.raises(StorageError, match="none of the attempts was answered"):
        nobody.get("new")


def test_the_callers_own_error_is_not_taken_for_the_stores(storage):
    def chunks():
        yield bytes(9 << 20)
        raise FileNotFoundError("the caller's file")

    with pytest.raises(FileNotFoundError, match="the caller's file"):
        storage.put_stream("new", chunks(), size=20 << 20)
    uploads = emulators.s3_client().list_multipart_uploads(Bucket=BUCKET)
    assert uploads.get("Uploads", []) == []


@pytest.mark.parametrize(
    ("status", "text", "place", "kind", "named"),
    [
        (
            403,
            "PUT http://169.254.169.254/latest/api/token",
            "s3://b/k",
            StorageDeniedError,
            "AWS_ACCESS_KEY",
        ),
        (0, "GET http://metadata.google.internal/v1/token - timed out", "gs://b/k", StorageError, "GOOGLE_APPLICATION"),
        (503, "GET http://169.254.170.2/v2 - Unavailable", "az://b/k", StorageError, "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_missing_credentials_are_not_taken_for_missing_permissions(status, text, place, kind, named):
    answer = Answer(status=status, code="", text=text)
    for error in (refusal(place, "read", "the right to read", answer), refusal_of_new(place, "the right", answer)):
        assert type(error) is kind
        assert "no credentials were found" in str(error)
        assert named in str(error)
        assert "the right" not in str(error)


def test_a_store_in_the_network_of_a_machine_is_a_store():
    answer = Answer(status=404, code="NoSuchKey", text="GET http://169.254.10.1:9000/b/k - Not Found")
    assert type(refusal("s3://b/k", "read", "s3:GetObject", answer)) is ObjectMissingError
