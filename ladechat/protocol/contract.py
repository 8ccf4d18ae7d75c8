"""The name and version of the format, its limits, and the error of a line that breaks it."""

import signal

FORMAT = "ladechat"
VERSION = "4.6"
"""Major.minor. A new kind or key raises the minor version. A changed meaning, or a new value where readers know all
values, raises the major one: readers refuse later major versions, and accept earlier ones."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line that a reader must accept: a `Generate` carries a whole conversation."""

WHERE = signal.SIGUSR1
"""An engine that gets this signal, after its header, writes the stacks of its threads to its standard error."""


class ProtocolError(ValueError):
    """A line that is not a message of this protocol, or not one this version can read."""
