"""The user's own keys for the actions of the chat: which of them can hold, and where they stand in place of ours.

Textual's own keymap is not used: it drops the other actions of a key that is given away, as Esc has several, and is
applied only after the prompt has claimed its keys.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.keys import KEY_ALIASES, REPLACED_KEYS, Keys, _character_to_key, key_to_character

from ladechat import keys
from ladechat.keys import APP_KEY_GROUPS, APP_KEYS, NAMES, key_name

Keymap = Mapping[str, str]
"""The user's keys by the ids of bindings, several separated by commas."""
IDS = tuple(id_ for _, ids in APP_KEY_GROUPS for id_ in ids)
"""The names of the actions whose keys can be others, in order of importance."""
SCREENS: dict[str, Sequence[Binding]] = {
    "the chat": APP_KEYS,
    "a replay": keys.REPLAY_KEYS,
    "a race": keys.RACE_KEYS,
    "the lessons": keys.LEARN_KEYS,
    "the list of conversations": keys.CONVERSATIONS_KEYS,
    "a conversation that is read": keys.READING_KEYS,
    "the list of models": keys.MODELS_KEYS,
    "the settings": keys.SETTINGS_KEYS,
}
"""All screens with keys, as sentences call them: a user's key must do nothing else on any of them."""
MAY_BE_CHARACTERS = ("explain", *keys.PACE_IDS)
"""The ids of keys that may be characters: they act only while the prompt is empty. Other actions would be typed."""
MODIFIERS = frozenset(("ctrl", "alt", "shift", "super", "hyper", "meta"))
_LABELLED = {label.lower(): key for key, label in NAMES.items()}
_SAME = {same: key for key, others in KEY_ALIASES.items() for same in others} | {"ctrl+h": "backspace"}
"""Keys that terminals send as other ones."""
_MEANT = {key: id_ for id_ in reversed(IDS) for one in APP_KEYS if one.id == id_ for key in one.key.split(",")}
"""The action that our sentences mean by a key. Of several it is the most important: Esc means Stop."""


def own_keys(wanted: Keymap, prompt_keys: Sequence[Binding] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """Return the user's keys that take effect, and for each of the others a sentence, by its name, that says why not.

    Two actions can share a key only if they do so from the start. Of two that cannot, the later one is refused. Wanted
    keys are written as labelled on keyboards or as Textual names them; `prompt_keys` are those of the chat's prompt.
    """
    keymap, refused = dict[str, str](), dict[str, str]()
    for name, text in wanted.items():
        named = {key.strip(): _named(key.strip()) for key in text.split(",")}
        unknown = [key for key, one in named.items() if not _is_known(one)]
        typed = [key for key, one in named.items() if _is_character(one) and name not in MAY_BE_CHARACTERS]
        if name not in IDS:
            near = get_close_matches(name, IDS, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(IDS)}."
            refused[name] = f"no action is called {name!r}; {meant}"
        elif unknown:
            refused[name] = f"{name}: {unknown[0]!r} is no key; keys are written as f5, ctrl+s, alt+k or ?."
        elif typed:
            refused[name] = f"{name}: {typed[0]!r} would be typed; take an F key, or one with ctrl or alt."
        else:
            keymap[name] = ",".join(named.values())
    while (clash := _clash(keymap, {**SCREENS, "the chat": (*APP_KEYS, *prompt_keys)})) is not None:
        refused[clash[0]] = clash[1]
        del keymap[clash[0]]
    return keymap, refused


def _clash(keymap: Keymap, screens: Mapping[str, Sequence[Binding]]) -> tuple[str, str] | None:
    """Return the last of the user's keys that does something else on a screen, by its name, with a sentence."""
    for name in reversed(list(keymap)):
        for place, table in screens.items():
            for mine in (one for one in table if one.id == name):
                for other in (one for one in table if not _keys(one) & _keys(mine)):
                    for key in _keys(in_own_keys(mine, keymap)) & _keys(in_own_keys(other, keymap)):
                        return name, f"{name}: {key_name(key)} is ‘{other.description}’ in {place}."
    return None


def _keys(binding: Binding) -> set[str]:
    return set(binding.key.split(","))


def _named(key: str) -> str:
    """Return a key as Textual names it: `Ctrl+K` is `ctrl+k`, `?` is `question_mark`, `Page Up` is `pageup`."""
    parts = [key] if len(key) == 1 else key.lower().split("+")
    named = "+".join(_LABELLED.get(one) or (_character_to_key(one) if len(one) == 1 else one) for one in parts)
    return _SAME.get(named, named)


def _is_known(key: str) -> bool:
    *modifiers, last = key.split("+")
    return MODIFIERS.issuperset(modifiers) and (last in {one.value for one in Keys} or _is_character(last))


def _is_character(key: str) -> bool:
    return (key_to_character(REPLACED_KEYS.get(key, key)) or "\n").isprintable()


# --- in place of ours -------------------------------------------------------------------------------------------------


def keymap_of(app: App[Any]) -> Keymap:
    """Return the user's keys."""
    keymap: Keymap = getattr(app, "keymap", {})
    return keymap


def in_own_keys(binding: Binding, keymap: Keymap) -> Binding:
    """Return a binding with the user's keys."""
    own = keymap.get(binding.id or "")
    return binding if own is None else replace(binding, key=own, key_display=None)


def rebound(bindings: BindingsMap, keymap: Keymap) -> BindingsMap:
    """Return the bindings of a screen with the user's keys, in the same order."""
    found: dict[str, list[Binding]] = {}
    for _, one in bindings:
        own = in_own_keys(one, keymap)
        for key in own.key.split(","):
            bound = replace(own, key=key)
            if bound not in found.setdefault(key, []):
                found[key].append(bound)
    return BindingsMap.from_keys(found)


def keys_of(bindings: BindingsMap, ids: Collection[str | None]) -> frozenset[str]:
    """Return the keys of some actions."""
    return frozenset(key for key, one in bindings if one.id in ids)


def with_own_keys(text: str, app: App[Any], *ids: str) -> str:
    """Return a sentence of ours that names the user's keys in place of ours: `F5 starts it again`. `ids` are the
    actions that it means, where a more important one has the same key.
    """
    if not (keymap := keymap_of(app)):
        return text
    meant = {**_MEANT, **{key: one.id for one in APP_KEYS if one.id in ids for key in one.key.split(",")}}
    own = {key_name(key): key_name(keymap[id_].split(",")[0]) for key, id_ in meant.items() if id_ in keymap}
    ours = "|".join(sorted(map(re.escape, own), key=len, reverse=True))
    return re.sub(rf"(?<![^\s(])(?:{ours})(?!\w)", lambda found: own[found[0]], text) if own else text
