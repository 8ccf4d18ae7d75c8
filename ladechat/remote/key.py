"""The key of a server: from the environment or the system's keyring, and never in a text that anybody reads."""

import os

from ladechat.remote.faults import KEYS, ServerFault
from ladechat.server_address import KEY_BELONGS_TO, KEY_VARIABLE, ServerAddress

SERVICE = "ladechat"
"""The name in the keyring under which each server's origin has its key."""
OPENAI_VARIABLE, OPENAI = "OPENAI_API_KEY", "https://api.openai.com"
HIDDEN = "‹key›"


class Key:
    """A key, or none. It is not shown where this object is."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __bool__(self) -> bool:
        return self._value is not None

    def headers(self) -> dict[str, str]:
        """Return the header of requests that carries it."""
        return {} if self._value is None else {"Authorization": f"Bearer {self._value}"}

    def hide(self, text: str) -> str:
        """Return a text that came from the server, with the key replaced where it repeats it."""
        return text if self._value is None else text.replace(self._value, HIDDEN)


def key_for(address: ServerAddress) -> Key:
    """Return the key that is meant for a server.

    The environment's key belongs to the server that was named at the start, not to one that is chosen later; that of
    OpenAI to its own. The keyring has one for each server.

    Raises:
        ServerFault: no header can carry it.
    """
    value = _of_environment(address) or _of_keyring(address)
    if value is None:
        return Key(None)
    value = value.strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ServerFault(f"The key for {address.host} has characters that no key has.", KEYS, "load_failed")
    return Key(value or None)


def _of_environment(address: ServerAddress) -> str | None:
    if os.environ.get(KEY_BELONGS_TO, address.origin) == address.origin and (key := os.environ.get(KEY_VARIABLE)):
        return key
    return os.environ.get(OPENAI_VARIABLE) if address.origin == OPENAI else None


def _of_keyring(address: ServerAddress) -> str | None:
    """Return the key in the system's keyring; None without one, or without the package that reads it."""
    try:
        import keyring

        found: str | None = keyring.get_password(SERVICE, address.origin)
    except Exception:  # each keyring has errors of its own; without a key the server says what it wants
        return None
    return found
