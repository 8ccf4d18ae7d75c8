"""Certificates, proxies and keyrings, with real sockets and the programs' own settings for them."""

import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.remote.local_proxy import LocalProxy
from tests.remote.scripted_server import ScriptedServer, vllm_stream
from tests.remote.test_process import KEY, ladechat

STREAM = vllm_stream([(1, "Good")], [(2, " day.")])


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this machine would carry what is sent to loopback."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate that only itself vouches for; return its file, and what a server with it needs."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    chain, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", f"subjectAltName={','.join(names)}", "-keyout", str(key), "-out", str(chain)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return chain, context


def asked(server: ScriptedServer, **environment: str) -> "subprocess.CompletedProcess[str]":
    return ladechat("ask", "--server", server.url, "Hi?", LADECHAT_SERVER_KEY=KEY, **environment)


def refusal(server: ScriptedServer, **environment: str) -> str:
    """The one line that says why there is no answer."""
    said = asked(server, **environment)
    assert said.returncode == 1 and said.stdout == "" and "Traceback" not in said.stderr
    assert KEY not in said.stderr and said.stderr.count("\n") == 1
    return said.stderr


# --- certificates -----------------------------------------------------------------------------------------------------


def test_a_certificate_of_ones_own_is_refused_in_a_sentence_until_it_is_named(tmp_path: Path) -> None:
    chain, tls = certificate(tmp_path, "IP:127.0.0.1")
    with ScriptedServer(None, STREAM, tls=tls) as server:
        said = refusal(server)
        assert f"The certificate of 127.0.0.1:{server.port} cannot be verified: self-signed certificate." in said
        assert "SSL_CERT_FILE" in said and not server.requests
        trusted = asked(server, SSL_CERT_FILE=str(chain))
        assert (trusted.returncode, trusted.stdout) == (0, "Good day.\n")


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    chain, tls = certificate(tmp_path, "DNS:other.example")
    with ScriptedServer(None, STREAM, tls=tls) as server:
        assert "not valid for '127.0.0.1'" in refusal(server, SSL_CERT_FILE=str(chain)) and not server.requests


def test_https_to_a_server_without_it_is_no_fault_of_a_certificate() -> None:
    with ScriptedServer(None, STREAM) as server:
        said = ladechat("ask", "--server", server.url.replace("http:", "https:"), "Hi?")
        assert said.returncode == 1 and "certificate" not in said.stderr
        assert "does not speak https" in said.stderr and "http://" in said.stderr


def test_a_file_of_certificates_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    with ScriptedServer(None, STREAM) as server:
        assert "SSL_CERT_FILE" in refusal(server, SSL_CERT_FILE=str(tmp_path / "no.pem"))


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_carries_the_answer(variable: str) -> None:
    with ScriptedServer(None, STREAM) as server, LocalProxy() as proxy:
        said = asked(server, **{variable: proxy.url})
        assert (said.returncode, said.stdout) == (0, "Good day.\n")
        assert len(proxy.asked) == len(server.requests) and proxy.asked[0].startswith(f"GET {server.url}/models")


def test_a_proxy_of_https_sees_the_host_alone(tmp_path: Path) -> None:
    chain, tls = certificate(tmp_path, "IP:127.0.0.1")
    with ScriptedServer(None, STREAM, tls=tls) as server, LocalProxy() as proxy:
        said = asked(server, HTTPS_PROXY=proxy.url, SSL_CERT_FILE=str(chain))
        assert (said.returncode, said.stdout) == (0, "Good day.\n")
        assert {line.split()[1] for line in proxy.asked} == {f"127.0.0.1:{server.port}"}
        assert {line.split()[0] for line in proxy.asked} == {"CONNECT"} and KEY.encode() not in proxy.heard


def test_no_proxy_names_what_needs_none() -> None:
    with ScriptedServer(None, STREAM) as server, LocalProxy() as proxy:
        said = asked(server, HTTP_PROXY=proxy.url, NO_PROXY="127.0.0.1")
        assert said.returncode == 0 and not proxy.asked


@pytest.mark.parametrize("status", ["403 Forbidden", "407 Proxy Authentication Required"])
def test_a_proxy_that_refuses_is_named_as_such(tmp_path: Path, status: str) -> None:
    chain, tls = certificate(tmp_path, "IP:127.0.0.1")
    with ScriptedServer(None, STREAM, tls=tls) as server, LocalProxy(status) as proxy:
        said = refusal(server, HTTPS_PROXY=proxy.url, SSL_CERT_FILE=str(chain))
        assert "The proxy on the way to" in said and status[:3] in said
    with ScriptedServer(None, STREAM) as server, LocalProxy(status) as proxy:
        said = refusal(server, HTTP_PROXY=proxy.url)
        assert status[:3] in said and ("The proxy on the way to" in said or status.startswith("403"))


def test_a_proxy_that_is_not_there_is_thought_of() -> None:
    with LocalProxy() as gone:
        url = gone.url
    with ScriptedServer(None, STREAM) as server:
        said = refusal(server, HTTP_PROXY=url)
        assert "Connection refused" in said and "HTTP_PROXY" in said


def test_a_proxy_that_cannot_be_one_repeats_no_password() -> None:
    with ScriptedServer(None, STREAM) as server:
        said = refusal(server, HTTP_PROXY="gopher://me:hunter2@proxy")
        assert "HTTP_PROXY" in said and "hunter2" not in said


# --- the keyring ------------------------------------------------------------------------------------------------------

BACKEND = '''
from keyring.backend import KeyringBackend


class Pairs(KeyringBackend):
    """The service and the name, in the place of a secret."""

    priority = 1

    def get_password(self, service, name):
        return f"{service}-{name}"

    def set_password(self, service, name, secret):
        raise NotImplementedError


class Locked(Pairs):
    def get_password(self, service, name):
        raise RuntimeError("hunter2 is locked")
'''


def of_keyring(server: ScriptedServer, folder: Path, backend: str) -> "subprocess.CompletedProcess[str]":
    """Ask with the keys of a backend of ours in the real `keyring`."""
    pytest.importorskip("keyring")
    (folder / "our_keyring.py").write_text(BACKEND)
    path = os.pathsep.join([str(Path.cwd()), str(folder)])
    environment = {"PYTHONPATH": path, "PYTHON_KEYRING_BACKEND": f"our_keyring.{backend}"}
    return ladechat("ask", "--server", server.url, "Hi?", **environment)


def test_the_keyring_has_a_key_for_each_server(tmp_path: Path) -> None:
    with ScriptedServer(None, STREAM) as server:
        assert of_keyring(server, tmp_path, "Pairs").returncode == 0
        expected = f"Bearer ladechat-http://127.0.0.1:{server.port}"
        assert {one.headers["authorization"] for one in server.requests} == {expected}


def test_a_locked_keyring_gives_no_key_and_stops_nothing(tmp_path: Path) -> None:
    with ScriptedServer(None, STREAM) as server:
        said = of_keyring(server, tmp_path, "Locked")
        assert (said.returncode, said.stdout) == (0, "Good day.\n") and "hunter2" not in said.stderr
        assert not any("authorization" in one.headers for one in server.requests)


def test_what_asks_a_server_reads_the_keyring_of_the_command_line(tmp_path: Path) -> None:
    """`keyring set ladechat URL` of docs/server.md, with a keyring in a file."""
    pytest.importorskip("keyring")
    (tmp_path / "file_keyring.py").write_text(FILE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(tmp_path)]),
        "PYTHON_KEYRING_BACKEND": "file_keyring.InFile",
        "KEYRING_FILE": str(tmp_path / "keys.json"),
    }
    with ScriptedServer(None, STREAM) as server:
        origin = f"http://127.0.0.1:{server.port}"
        command = [sys.executable, "-m", "keyring", "set", "ladechat", origin]
        subprocess.run(command, input=f"{KEY}\n", text=True, env=environment, check=True, capture_output=True)
        assert ladechat("ask", "--server", server.url, "Hi?", **environment).returncode == 0
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


FILE = """
import json, os, pathlib

from keyring.backend import KeyringBackend

FILE = pathlib.Path(os.environ["KEYRING_FILE"])


class InFile(KeyringBackend):
    priority = 1

    def _all(self):
        return json.loads(FILE.read_text()) if FILE.exists() else {}

    def get_password(self, service, name):
        return self._all().get(f"{service} {name}")

    def set_password(self, service, name, secret):
        FILE.write_text(json.dumps({**self._all(), f"{service} {name}": secret}))
"""
