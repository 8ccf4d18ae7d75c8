"""Converts lines of protocol 1 and 2 to protocol 3. They had W, N and G as settings, whatever the decoder."""

from typing import Any

PARAMETERS = {
    "lookahead": ("window", "ngram", "guesses", "pool_prompt", "pool_accepted"),
    "prompt_lookup": ("window", "ngram"),
    "jacobi": ("window",),
}
"""The settings that each decoder used in those versions."""


def is_earlier(message: dict[str, Any]) -> bool:
    """Return whether the message has settings in the form before protocol 3."""
    settings = message.get("settings")
    return isinstance(settings, dict) and "window" in settings


def upgraded(message: dict[str, Any]) -> dict[str, Any]:
    """Return the same message in protocol 3. Invalid fields stay, so that decoding reports them."""
    old = dict(message["settings"])
    decoder = "auto" if old.pop("auto", False) and old.get("decoder") == "lookahead" else old.get("decoder")
    numbers = {name: old.pop(name) for name in PARAMETERS["lookahead"] if name in old}
    parameters = {name: numbers[name] for name in PARAMETERS.get(str(decoder), ()) if name in numbers}
    new = {**message, "settings": {**old, "decoder": decoder, "parameters": parameters}}
    if "plain_only" in new:
        new["single_token"] = new.pop("plain_only")
    return new
