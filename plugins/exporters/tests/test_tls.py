"""A renewal reads files while they change. The key and the certificate that were read together are served."""

import socket
import ssl
import threading

from estimator_exporters.serving.tls import Tls
from plugins.exporters.tests.command_server import needs_curl
from plugins.exporters.tests.test_doors import signed

pytestmark = needs_curl


def handshake(context, authority):
    """The subject of the certificate that a client of this context sees."""
    near, far = socket.socketpair()
    trusting = ssl.create_default_context(cafile=str(authority))
    trusting.check_hostname = False

    def serve():
        with context.wrap_socket(far, server_side=True) as served:
            served.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    with trusting.wrap_socket(near) as found:
        found.sendall(b"1")
        seen = found.getpeercert()["subject"]
    thread.join()
    return seen


def test_a_key_that_changes_while_a_certificate_is_renewed_ends_no_handshake(tmp_path, monkeypatch):
    for name in ("served", "other"):
        signed(tmp_path, "authority", name)
    tls = Tls(certificate=tmp_path / "served.pem", key=tmp_path / "served.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)

    def changes(self):
        def look():
            parts = self.read()
            tls.key.write_bytes((tmp_path / "other.key").read_bytes())  # half of the next renewal
            return parts

        return look

    monkeypatch.setattr(Tls, "changes", changes)
    tls.renewal(context)()
    assert handshake(context, tmp_path / "authority.pem") == ((("commonName", "served"),),)
