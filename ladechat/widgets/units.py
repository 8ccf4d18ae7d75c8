"""What a step is: a forward pass, or of a server that does not tell those, a chunk of its stream."""

import re
from collections.abc import Iterable

from ladechat.protocol import ServerInfo

PASS, CHUNK, STEP = "pass", "chunk", "step"

_PASS = re.compile(r"\b([Pp])ass(es)?\b")


def unit_of(server: ServerInfo | None) -> str:
    """Return what a step of a server is; None: this machine decodes."""
    return PASS if server is None or server.passes else CHUNK


def shared_unit(servers: Iterable[ServerInfo | None]) -> str:
    """Return what a step of each of several servers is; ``step`` if they differ."""
    units = {unit_of(server) for server in servers}
    return STEP if len(units) > 1 else next(iter(units), PASS)


def in_unit(text: str, unit: str) -> str:
    """Return a text about passes as one about steps: ``Four passes a second`` as ``Four chunks a second``."""

    def noun(found: re.Match[str]) -> str:
        name = unit.capitalize() if found[1] == "P" else unit
        return name + "s" if found[2] else name

    return text if unit == PASS else _PASS.sub(noun, text)
