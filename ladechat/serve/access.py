"""Access control of the server: a secret token in the path, and the headers that a browser cannot be made to forge."""

import hmac
import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field

TOKEN_BYTES = 24
"""Random bytes of the token: 192 bits cannot be guessed."""

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
    # No popups: a link in a model's text is not opened, not even by a click.
    "sandbox": "allow-scripts allow-same-origin",
}
"""The page's content security policy: nothing outside of this server."""


@dataclass(frozen=True)
class Access:
    """The conditions for a request.

    Attributes:
        host: the address that the server listens on.
        token: the secret that every path begins with.
    """

    host: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), repr=False)

    def refusal(self, path: str, host: str, origin: str | None, *, websocket: bool) -> str | None:
        """Return why a request is refused, in a sentence; None if it is allowed.

        Args:
            path: the path of the URL.
            host: the Host header. A foreign page whose name resolves to this server (DNS rebinding) sends its own name.
            origin: the Origin header: the page that opens a websocket. Browsers let any page do that.
            websocket: whether the request opens a websocket.
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
        """Return the headers of every response: no outside requests, no frames, no cache, no referrer."""
        # Not every browser counts a websocket of the same server as 'self'.
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
        """Return whether the Host header names this server. A numeric address cannot be spoofed by DNS."""
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
    """Return whether only this machine can reach the host."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
