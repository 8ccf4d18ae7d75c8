"""Who is let in: nobody without the token, no page of another site, and no name that somebody else pointed here."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from ladechat.serve.access import Access

HERE = Access("127.0.0.1", token="secret-token")
EVERYWHERE = Access("0.0.0.0", token="secret-token")
PATH = "/secret-token/"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "localhost:9000", "127.0.0.1"])
def test_this_machine_is_let_in_by_its_names_at_any_port(host: str) -> None:
    """A tunnel has another port at its other end."""
    assert HERE.refusal(PATH, host, None, websocket=False) is None
    assert HERE.refusal(f"{PATH}ws", host, f"http://{host}", websocket=True) is None


FOREIGN = [
    "evil.example:8000", "192.168.1.7:8000", "", "[", "127.0.0.1.evil.example", "localhost.", 'localhost:"><script>',
    "me@localhost",
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_that_is_not_this_machines_is_refused(host: str) -> None:
    assert HERE.refusal(PATH, host, None, websocket=False) is not None


def test_a_server_for_other_machines_goes_by_its_addresses_and_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Workstation")
    for host in ("192.168.1.7:8000", "[fe80::1]:8000", "workstation:8000", "workstation.local:8000", "localhost:8000"):
        assert EVERYWHERE.refusal(PATH, host, None, websocket=False) is None
    assert EVERYWHERE.refusal(PATH, "evil.example:8000", None, websocket=False) is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9000", "https://localhost:8000", ""]
)
@pytest.mark.parametrize("websocket", [True, False])
def test_another_page_is_refused(origin: str, websocket: bool) -> None:
    assert HERE.refusal(PATH, "localhost:8000", origin, websocket=websocket) is not None


def test_a_websocket_says_which_page_opens_it() -> None:
    assert HERE.refusal(PATH, "localhost:8000", None, websocket=True) is not None


@given(token=st.text() | st.sampled_from(["secret-toke", "secret-token2", "Secret-token", "secret-token%2f"]))
def test_any_other_token_is_refused(token: str) -> None:
    said = HERE.refusal(f"/{token}/", "localhost", None, websocket=False)
    assert (said is None) == (token.partition("/")[0] == "secret-token")
    assert "secret-token" not in (said or "")


@given(host=st.text(max_size=30) | st.ip_addresses().map(str), origin=st.none() | st.text(max_size=30))
def test_no_header_breaks_the_check(host: str, origin: str | None) -> None:
    if HERE.refusal(PATH, host, origin, websocket=True) is None:
        name = host.rpartition(":")[0] or host
        assert name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback


def test_tokens_differ_and_are_not_in_what_is_printed_of_an_access() -> None:
    one, other = Access("localhost"), Access("localhost")
    assert one.token != other.token and len(one.token) >= 32
    assert one.token not in repr(one)
