"""Who may talk to the server: a secret token in the path, and the headers that a browser cannot be made to forge."""

import hmac
import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field

TOKEN_BYTES = 24
"""Of randomness: nobody guesses 192 bits."""

HOST_HEADER = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?", re.ASCII)

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # xterm.js writes style elements
    "font-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "frame-ancestors": "'none'",
    "form-action": "'none'",
    "base-uri": "'none'",
    # No popups: a link in what a model writes is not opened, not even by a click.
    "sandbox": "allow-scripts allow-same-origin",
}
"""What the page may do: nothing outside of this server."""


@dataclass(frozen=True)
class Access:
    """What a request has to have.

    Attributes:
        host: the address that the server listens at.
        token: the secret that the path of every address begins with.
    """

    host: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), repr=False)

    def refusal(self, path: str, host: str, origin: str | None, *, websocket: bool) -> str | None:
        """Why a request is refused, in a sentence; None if it is not.

        Args:
            path: of the address.
            host: the Host header. A page elsewhere whose name was pointed here (DNS rebinding) has its own name in it.
            origin: the Origin header. A browser says in it which page opens a websocket, which no other rule hinders.
            websocket: whether this opens one.
        """
        if not self._is_here(host):
            return f"{host!r} is no name of this server; use the address that ladechat printed."
        if (origin is not None or websocket) and origin != f"http://{host}":
            return "Another page may not talk to this server."
        first = path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(first.encode(errors="replace"), self.token.encode()):
            return "The token in the address is missing or wrong; use the whole address that ladechat printed."
        return None

    def headers(self, host: str) -> dict[str, str]:
        """What every answer says: no outside requests, no frames, nothing kept, and no address told to anybody."""
        # Not every browser takes a websocket of the same server to be 'self'.
        policy = {**POLICY, "connect-src": f"{POLICY['connect-src']} ws://{host}"}
        return {
            "Content-Security-Policy": "; ".join(f"{what} {source}" for what, source in policy.items()),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    def _is_here(self, header: str) -> bool:
        """Does the Host header name this server? An address in digits cannot have been pointed here by somebody."""
        match = HOST_HEADER.fullmatch(header)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        own = socket.gethostname().lower()
        return _is_address(name) or name in (self.host.lower(), own, f"{own}.local")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
