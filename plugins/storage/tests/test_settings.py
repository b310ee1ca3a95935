"""Tests of the settings of stores: URLs, options, environment and profiles. Nothing is imported too early."""

import subprocess
import sys

import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins
from estimator_core.storage import open_storage
from estimator_storage import open_gcs, open_s3
from estimator_storage.locations import parse
from plugins.storage.tests import emulators

SECRET = "AKIA-or-a-token"


@pytest.mark.parametrize(
    ("url", "bucket", "prefix", "account"),
    [
        ("s3://models", "models", "", ""),
        ("S3://models/", "models", "", ""),
        ("gs://models/digits/run 1/", "models", "digits/run 1", ""),
        ("abfss://models@acme.dfs.core.windows.net/digits", "models", "digits", "acme"),
        ("abfs://models@acme.blob.core.windows.net", "models", "", "acme"),
    ],
)
def test_urls(url, bucket, prefix, account):
    location = parse(url)
    assert (location.bucket, location.prefix, location.account) == (bucket, prefix, account)
    assert parse(location.url) == location


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///prefix",
        "s3://a bucket/prefix",
        "s3://bucket\n/prefix",
        "az://a[bucket]/prefix",
        f"s3://{SECRET}:{SECRET}@bucket/prefix",
        f"s3://{SECRET}@bucket",
        f"abfss://{SECRET}@host/x",
        f"az://container/prefix?sv=1&sig={SECRET}",
        f"az://container/prefix#{SECRET}",
        "s3://bucket//a",
        "s3://bucket/../a",
        "s3://bucket/" + "x" * 124,
    ],
)
def test_urls_that_cannot_be_used_are_refused_and_secrets_in_them_not_repeated(url):
    with pytest.raises(ArgumentError) as caught:
        parse(url)
    assert SECRET not in str(caught.value)


def test_nothing_of_a_store_is_imported_before_its_scheme_is_used():
    program = (
        "import sys, estimator_storage.plugin\n"
        "from estimator_core.storage import open_storage\n"
        "open_storage(sys.argv[1])\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'obstore', 'google', 'boto3', 'botocore', 'jax', 'numpy'}))\n"
        "from estimator_core.plugins import Plugins\n"
        "Plugins().find('storage', 's3')\n"
        "print('obstore' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "."], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "False"]


def test_gcs_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(ArgumentError, match=r"pip install 'estimator-storage\[gcs\]'"):
        open_gcs("gs://bucket/run", options={})


def test_an_option_wins_over_the_environment(s3, monkeypatch):
    emulators.s3_client().create_bucket(Bucket="by-option")
    right = "http://{}:{}".format(*s3)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    plugins = Plugins(options={"estimator-storage": {"s3_endpoint": right}})
    open_storage("s3://by-option/run", plugins).put("a", b"x")
    monkeypatch.setenv("ESTIMATOR_OPTION_ESTIMATOR_STORAGE_S3_ENDPOINT", right)
    assert open_storage("s3://by-option/run").get("a") == b"x"
    monkeypatch.delenv("ESTIMATOR_OPTION_ESTIMATOR_STORAGE_S3_ENDPOINT")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", right)
    assert open_storage("s3://by-option/run").get("a") == b"x"


def test_the_command_line_has_the_option_too(s3, monkeypatch, capsys):
    emulators.s3_client().create_bucket(Bucket="by-command")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    option = "estimator-storage.s3_endpoint=http://{}:{}".format(*s3)
    assert main(["--plugin-option", option, "storage", "doctor", "s3://by-command/x", "--megabytes", "1"]) == 0
    assert "Runs are safe here" in capsys.readouterr().out


@pytest.fixture
def profile(s3, tmp_path, monkeypatch):
    """Writes credentials only into the file of AWS."""
    emulators.s3_client().create_bucket(Bucket="by-profile")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    keys = "aws_access_key_id = of-the-file\naws_secret_access_key = secret-of-the-file\n"
    (tmp_path / "credentials").write_text(f"[acme]\n{keys}[default]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize("name", ["acme", ""])
def test_a_profile_is_read(profile, monkeypatch, name):
    if name:
        monkeypatch.setenv("AWS_PROFILE", name)
    storage = open_s3("s3://by-profile/run", options={})
    storage.put("a", b"x")
    assert storage.get("a") == b"x"
    assert "secret-of-the-file" not in repr(storage)


def test_a_profile_that_is_not_there_is_named(profile, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ArgumentError, match="'nobody' of AWS cannot be used"):
        open_s3("s3://by-profile/run", options={})


def test_a_profile_without_boto3_says_what_to_install(profile, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setenv("AWS_PROFILE", "acme")
    with pytest.raises(ArgumentError, match=r"pip install 'estimator-storage\[profiles\]'"):
        open_s3("s3://by-profile/run", options={})
