"""The beginning of a stream: the fields of a header that are the same in every version.

They say who writes, and whether this version can read the rest.
"""

import msgspec
from msgspec import Struct

from ladechat.protocol.contract import FORMAT, VERSION


class Head(Struct, frozen=True):
    """What every version writes into its header."""

    event: str
    format: str
    version: str
    program: str = ""

    @property
    def is_readable(self) -> bool:
        """Whether this version can read the stream: it is of the same major version, or of an earlier one."""
        return _numbers(self.version)[0] <= _numbers(VERSION)[0]

    @property
    def takes_other_commands(self) -> bool:
        """Whether an engine that writes it may understand this version's commands in another way, as of another major
        version.
        """
        return _numbers(self.version)[0] != _numbers(VERSION)[0]

    @property
    def is_newer(self) -> bool:
        """Whether the stream may have kinds and keys that this version does not know."""
        return _numbers(self.version) > _numbers(VERSION)


def read_head(line: bytes) -> Head | None:
    """Return what the first line of a stream says; None if it is no header."""
    try:
        head = msgspec.json.decode(line, type=Head)
        _numbers(head.version)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    return head if (head.event, head.format) == ("header", FORMAT) else None


def _numbers(version: str) -> tuple[int, int]:
    """Return the major and the minor number.

    Raises:
        ValueError: it is no version.
    """
    major, minor = version.split(".")
    return int(major), int(minor)
