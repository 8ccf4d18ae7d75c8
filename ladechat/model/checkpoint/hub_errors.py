"""Turns errors of a hub or of the connection into one sentence with a remedy. Imports no torch."""

import errno

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from ladechat.model.checkpoint.files import LoadError
from ladechat.model.checkpoint.hub_answers import UntrustedAnswer
from ladechat.model.checkpoint.hub_http import httpx
from ladechat.model.checkpoint.transfer import Damaged

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
LOG_IN = "log in with `hf auth login` (or set HF_TOKEN)"


def hub_refusal(name: str, error: BaseException, missing: str | None = None) -> LoadError:
    """Return the error that explains why a model cannot be downloaded.

    Args:
        name: owner/name.
        error: the exception of huggingface_hub, httpx or the file system.
        missing: a file missing in the cached copy, if there is a copy.
    """
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        return hub_refusal(name, error.__cause__, missing)
    if isinstance(error, GatedRepoError):
        return _gated(name)
    if isinstance(error, RepositoryNotFoundError | RevisionNotFoundError | HFValidationError):
        return LoadError(
            "model_not_found",
            f"There is no model {name} on the hub, or it is private, and no folder of that name here.",
            f"Check the spelling (owner/name); for a private model {LOG_IN}.",
        )
    if isinstance(error, HfHubHTTPError):
        return _http_refusal(name, error, missing)
    if isinstance(error, UntrustedAnswer):
        message = f"The hub at {constants.ENDPOINT} {error}, which no hub does, so nothing more is fetched of {name}."
        hint = "Check HF_ENDPOINT, and whether what answers there is to be trusted."
        return LoadError("hub_unreachable", message, hint)
    if isinstance(error, Damaged):
        message = f"A file of {name} came twice as something else than the hub says it is."
        return LoadError("hub_unreachable", message, "Try again later, or from another network.")
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return no_room(name, "there was not enough room for all of it")
    if isinstance(error, OSError) and not isinstance(error, ConnectionError | LocalEntryNotFoundError | TimeoutError):
        message = f"{name} cannot be kept in {constants.HF_HUB_CACHE}: {error.strerror or type(error).__name__}."
        return LoadError("load_failed", message, "Set HF_HOME to a folder that you may write to, then start again.")
    if isinstance(error, OfflineModeIsEnabled):
        hint = "Unset HF_HUB_OFFLINE and start again, or give the folder of a checkpoint that you have."
        return _unreachable(name, "the hub is switched off by HF_HUB_OFFLINE", missing, hint)
    if isinstance(error, httpx.ProxyError):
        return _refused_by_proxy(name, str(error), missing)
    if isinstance(error, httpx.HTTPError | OSError):
        return _unreachable(name, f"the hub at {constants.ENDPOINT} cannot be reached", missing)
    return _unreachable(name, f"what answers at {constants.ENDPOINT} is no hub", missing)


def no_room(name: str, how_much: str) -> LoadError:
    """Return the error for a disk too small for the cache."""
    return LoadError(
        "disk_full",
        f"{name} does not fit the disk of {constants.HF_HUB_CACHE}: {how_much}.",
        "Free some space there, or set HF_HOME to a folder on a larger disk; what has come already is kept.",
    )


def _gated(name: str) -> LoadError:
    return LoadError(
        "gated",
        f"Access to {name} has to be granted by its owners first.",
        f"Ask for it on {constants.ENDPOINT}/{name}, {LOG_IN}, then start again.",
    )


def _http_refusal(name: str, error: HfHubHTTPError, missing: str | None) -> LoadError:
    status = error.response.status_code
    if status == httpx.codes.UNAUTHORIZED:
        return LoadError(
            "model_not_found",
            f"The hub did not accept the access token of this machine when it was asked for {name}.",
            "Log in anew with `hf auth login`, or set HF_TOKEN to a token that is valid.",
        )
    if status == httpx.codes.FORBIDDEN:
        said = " ".join((error.response.headers.get("X-Error-Message") or "").split())[:200].rstrip(".")
        return LoadError(
            "gated",
            f"The hub does not let this machine have {name}{': ' + said if said else ''}.",
            f"Look at {constants.ENDPOINT}/{name} and at what your access token may read; {LOG_IN}.",
        )
    if status == httpx.codes.NOT_FOUND:
        message = f"The hub at {constants.ENDPOINT} does not find {name}, or a file of it."
        return LoadError("model_not_found", message, "Check the spelling (owner/name), and HF_ENDPOINT if it is set.")
    if status == httpx.codes.PROXY_AUTHENTICATION_REQUIRED:
        return _refused_by_proxy(name, f"{status} {error.response.reason_phrase}", missing)
    return _unreachable(name, f"the hub at {constants.ENDPOINT} answers with error {status}", missing)


def _refused_by_proxy(name: str, said: str, missing: str | None) -> LoadError:
    """Return the error for a proxy that refuses connections. Its words, `said`, begin with the HTTP status."""
    words = " ".join(said.split())[:200].rstrip(".")
    hint = "Look at HTTPS_PROXY, or HTTP_PROXY and ALL_PROXY; NO_PROXY names hosts that are reached without it."
    if words.startswith(str(int(httpx.codes.PROXY_AUTHENTICATION_REQUIRED))):
        hint = "Put your name and password into HTTPS_PROXY (or HTTP_PROXY): http://NAME:PASSWORD@HOST:PORT."
    return _unreachable(name, f"the proxy in front of {constants.ENDPOINT} refuses ({words})", missing, hint)


def _unreachable(name: str, why: str, missing: str | None, hint: str = "") -> LoadError:
    here = f"is only partly on this machine ({missing} is missing)" if missing else "is not on this machine"
    hint = hint or "Check the name and the network, then try again: a download goes on where it ended."
    return LoadError("hub_unreachable", f"{name} {here}, and {why}.", hint)
