"""What goes wrong between this program and a server, each in a sentence, with what to do."""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.request import getproxies_environment, proxy_bypass

import httpx

from ladechat.protocol import Failed, FailureCode
from ladechat.server_address import ServerAddress

MOST_OF_A_REASON = 300
"""Characters of a server's own words that are shown."""
ASK_AGAIN = "Ask again; the conversation is kept."
KEYS = "Give the key in the environment variable LADECHAT_SERVER_KEY, or keep it in the keyring (docs/server.md)."
OTHERWISE = "Other settings, or another model, may do."
PROXIES = "HTTPS_PROXY and HTTP_PROXY name the proxy, NO_PROXY the servers that need none."
STARTED = "Is the server started, and its port right?"
OF_TEMPLATE = "chat_template_kwargs"
"""The field of a request with variables of the chat template."""

_OF_THE_CONTEXT = re.compile(r"context[ _-](length|size|window)|exceed_context|longer than the model", re.IGNORECASE)
_WHOLE_CONTEXT = re.compile(
    r"(?:context (?:length|size|window)(?: is| of)?|n_ctx)\D{0,4}(\d+)|context size \((\d+)", re.IGNORECASE
)
_OF_THE_PROMPT = re.compile(
    r"(?:has|contains|at least|total of \d+ tokens:) (\d+) (?:input )?tokens|\((\d+) in the messages|"
    r"input \((\d+) tokens|n_prompt_tokens\D{0,4}(\d+)|request \((\d+) tokens",
    re.IGNORECASE,
)


class ServerFault(Exception):
    """The reason why a server cannot be used, or an answer goes no further, in a sentence.

    Attributes:
        hint: what to do.
        code: for programs.
    """

    def __init__(self, message: str, hint: str = ASK_AGAIN, code: FailureCode = "internal") -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code

    def event(self, turn: int | None = None, *, fatal: bool = False) -> Failed:
        """Return the event that reports it."""
        return Failed(code=self.code, message=str(self), hint=self.hint, turn=turn, fatal=fatal)


class NotThere(ServerFault):
    """The server has nothing at a path."""


class StillLoading(ServerFault):
    """The server is up, and its model is not."""


class ContextFull(ServerFault):
    """Prompt and answer together are longer than the model's context.

    Attributes:
        room: the tokens that the prompt leaves for an answer; None if there are none, or if the server does not tell.
    """

    def __init__(self, message: str, room: int | None) -> None:
        hint = "Ask a shorter question, or begin a new conversation."
        super().__init__(message, hint, "message_too_long")
        self.room = room


def unreachable(error: httpx.HTTPError | httpx.InvalidURL | OSError, address: ServerAddress) -> ServerFault:
    """Return the fault for a request that got no answer, or only a part of one."""
    host = address.host
    tls = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return ServerFault(
            f"The certificate of {host} cannot be verified: {shortened(tls.verify_message)}.",
            "If it is your own, name the file of its authority in SSL_CERT_FILE.",
            "load_failed",
        )
    if tls is not None:
        why = shortened((tls.reason or "no reason").replace("_", " ").lower())
        return ServerFault(
            f"{host} does not speak https ({why}).", "Does its address begin with http://?", "load_failed"
        )
    if isinstance(error, httpx.ProxyError):
        return ServerFault(f"The proxy on the way to {host} refuses: {_reason(error)}.", PROXIES, "load_failed")
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return ServerFault(f"{host} does not answer.", "Is the host right, and is it up?", "load_failed")
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        hint = f"A proxy is on the way; is it up? {PROXIES}" if _has_proxy(address) else STARTED
        return ServerFault(f"{host} cannot be reached: {_reason(error)}.", hint, "load_failed")
    return ServerFault(f"The connection to {host} broke off ({type(error).__name__}).", ASK_AGAIN)


def _has_proxy(address: ServerAddress) -> bool:
    """Return whether the environment has a proxy for a server, as httpx reads it."""
    scheme, _, host = address.origin.partition("://")
    proxies = getproxies_environment()
    return bool(proxies.get(scheme) or proxies.get("all")) and not proxy_bypass(host)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what has caused it: httpx says little of that itself."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        within = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = within or cause.__cause__ or cause.__context__


def _reason(error: Exception) -> str:
    """Return the words of the system's own error behind this one, as the end of a sentence."""
    for cause in _causes(error):
        if isinstance(cause, ConnectionError) and cause.errno:  # asyncio repeats the address in its own words
            return os.strerror(cause.errno)
        if isinstance(cause, OSError) and cause.strerror:
            return shortened(cause.strerror)
    return shortened(str(error) or type(error).__name__)


def shortened(text: str) -> str:
    """Return the beginning of a server's own words, in one line and without its full stop."""
    line = " ".join(text.split())
    return (line if len(line) <= MOST_OF_A_REASON else f"{line[:MOST_OF_A_REASON]}…").rstrip(".")


def refused(
    status: int, says: str, headers: Mapping[str, str], address: ServerAddress, *, keyed: bool, model: str
) -> ServerFault:
    """Return the fault for a response that is an error.

    Args:
        status: the HTTP status.
        says: the server's own words, without the key.
        headers: those of the response.
        address: the server.
        keyed: whether a key was sent.
        model: the model that was asked; "" for none.
    """
    host, why = address.host, f": {shortened(says)}" if says else ""
    if status in (401, 403):
        first = f"{host} refuses the key" if keyed else f"{host} wants a key"
        return ServerFault(f"{first} ({status}{why}).", KEYS, "load_failed")
    if status == 407:
        return ServerFault(f"The proxy on the way to {host} wants a name and a password (407).", PROXIES, "load_failed")
    if status == 429:
        wait = waiting_seconds(headers.get("retry-after", ""))
        after = "" if wait is None else f" It asks to wait {wait:.0f} s."
        return ServerFault(f"{host} takes no more requests now (429{why}).{after}", ASK_AGAIN, "busy")
    if _OF_THE_CONTEXT.search(says):
        return ContextFull(f"The conversation does not fit into the model's context{why}.", _room(says))
    if status in (404, 405) and model:
        hint = "/model lists what it has, and so does a start without --model."
        return ServerFault(f"{host} has no model {model!r} ({status}{why}).", hint, "model_not_found")
    if status in (404, 405):
        hint = "The address of an OpenAI-compatible server mostly ends in /v1."
        return NotThere(f"There is no OpenAI-compatible API at {address.api} ({status}).", hint, "load_failed")
    if status == 503 and "loading" in says.lower():
        return StillLoading(f"{host} is still loading its model.", ASK_AGAIN, "busy")
    if status >= 500:
        return ServerFault(f"{host} failed ({status}{why}).", f"Its own log may say why. {ASK_AGAIN}")
    if 300 <= status < 400:
        hint = "A key is not carried to another address: give that address itself, if you trust it."
        return ServerFault(f"{host} sends on to another address ({status}).", hint, "load_failed")
    hint = "Set thinking to auto: then that field is not sent." if OF_TEMPLATE in says else OTHERWISE
    return ServerFault(f"{host} refuses the request ({status}{why}).", hint)


def _room(says: str) -> int | None:
    """Return the tokens that a prompt leaves in the context, as far as a server's words tell; None for none."""
    numbers = [_first_number(pattern, says) for pattern in (_WHOLE_CONTEXT, _OF_THE_PROMPT)]
    context, prompt = numbers
    return context - prompt if context is not None and prompt is not None and context > prompt else None


def _first_number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return None if found is None else int(next(filter(None, found.groups())))


def waiting_seconds(retry_after: str) -> float | None:
    """Return the seconds that the header Retry-After asks for, as a number or a date; None where it says neither."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
