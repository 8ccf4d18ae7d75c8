"""ladechat: a terminal chat app that shows lookahead decoding while it runs."""

__version__ = "0.1.0"
