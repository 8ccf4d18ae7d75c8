"""The address of a server that runs a model, and how one is written in the place of a model's name."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

SCHEMES = ("http", "https")
VERSION_PATH = "/v1"
MOST_CHARACTERS = 2000
KEY_VARIABLE = "LADECHAT_SERVER_KEY"
"""The environment variable with the key of a server."""
KEY_BELONGS_TO = "LADECHAT_SERVER_KEY_FOR"
"""The environment variable with the origin of the only server that gets it."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_AN_ADDRESS = re.compile(r"https?:", re.IGNORECASE)


class AddressRefused(ValueError):
    """The reason why no server can be asked at an address, and what to do, in a sentence. It repeats no password."""


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is asked.

    Attributes:
        api: the start of its OpenAI-compatible paths, as ``http://localhost:8000/v1``.
        root: the start of its own paths, as ``http://localhost:8000``.
        origin: scheme, host and port: what a key belongs to.
        host: host and port, as people name the server.
    """

    api: str
    root: str
    origin: str
    host: str

    @classmethod
    def of(cls, text: str) -> "ServerAddress":
        """Return the address that a user has typed; ``/v1`` may be left out.

        Raises:
            AddressRefused: it is no address of a server, or has a password, which every list of processes would show.
        """
        parts = _split(text)
        host = parts.hostname or ""
        if parts.username is not None or parts.password is not None:
            raise AddressRefused(
                f"The address of {host or 'a server'} has a name or a password in it, which lists of processes show; "
                "leave them out, and give the key in LADECHAT_SERVER_KEY."
            )
        if not host or parts.query or parts.fragment:
            raise AddressRefused("A server's address is like http://localhost:8000/v1: a host, a port, a path.")
        path = parts.path.rstrip("/")
        if not path:
            path = VERSION_PATH
        origin = f"{parts.scheme.lower()}://{parts.netloc.lower()}"
        return cls(
            api=origin + path, root=origin + path.removesuffix(VERSION_PATH), origin=origin, host=parts.netloc.lower()
        )

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read what is sent: it is encrypted, or stays on this machine."""
        return self.api.startswith("https:") or (urlsplit(self.api).hostname or "") in LOOPBACK


def _split(text: str) -> SplitResult:
    sentence = "A server's address begins with http:// or https://, as http://localhost:8000/v1."
    if len(text) > MOST_CHARACTERS or not text.isprintable() or any(map(str.isspace, text)):
        raise AddressRefused(sentence)
    try:
        parts = urlsplit(text)
        port = parts.port  # raises where it is no port
    except ValueError:
        raise AddressRefused("The port in the server's address is no number from 1 to 65535.") from None
    if parts.scheme.lower() not in SCHEMES or port == 0:
        raise AddressRefused(sentence)
    return parts


def is_server(model: str) -> bool:
    """Return whether a name in the place of a model's is a server's address, with a model's name after it or not."""
    return _AN_ADDRESS.match(model) is not None


def named(server: str | None, model: str) -> str:
    """Return the name of a model anywhere: its own, or of one on a server ``http://localhost:8000/v1 NAME``; the only
    model of a server needs no name.
    """
    return model if server is None else f"{server} {model}".rstrip()


def parted(name: str) -> tuple[str | None, str]:
    """Return the server, if there is one, and the model of a name as `named` makes it."""
    if not is_server(name):
        return None, name
    server, _, model = name.partition(" ")
    return server, model.strip()
