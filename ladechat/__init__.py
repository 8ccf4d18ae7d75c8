"""ladechat: a terminal chat app that shows lookahead decoding while it runs."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ladechat")
except PackageNotFoundError:  # run from a checkout that was never installed
    __version__ = "0+unknown"
