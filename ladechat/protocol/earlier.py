"""Lines of protocol 1 and 2, as protocol 3 says the same: what they set was W, N and G, whatever the decoder."""

from typing import Any

PARAMETERS = {
    "lookahead": ("window", "ngram", "guesses", "pool_prompt", "pool_accepted"),
    "prompt_lookup": ("window", "ngram"),
    "jacobi": ("window",),
}
"""Which of these settings each decoder of that time followed."""


def is_earlier(message: dict[str, Any]) -> bool:
    """Whether it has settings as they were before protocol 3."""
    settings = message.get("settings")
    return isinstance(settings, dict) and "window" in settings


def upgraded(message: dict[str, Any]) -> dict[str, Any]:
    """The same message in protocol 3. What is damaged stays so, for the decoder to name."""
    old = dict(message["settings"])
    decoder = "auto" if old.pop("auto", False) and old.get("decoder") == "lookahead" else old.get("decoder")
    numbers = {name: old.pop(name) for name in PARAMETERS["lookahead"] if name in old}
    parameters = {name: numbers[name] for name in PARAMETERS.get(str(decoder), ()) if name in numbers}
    new = {**message, "settings": {**old, "decoder": decoder, "parameters": parameters}}
    if "plain_only" in new:
        new["single_token"] = new.pop("plain_only")
    return new
