"""The user's own keys: what can be a key, what would have two meanings, and what our sentences call it then."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import example, given, strategies as st
from textual.app import App
from textual.binding import Binding
from textual.widgets import TextArea

from ladechat.keys import EXPLAIN_KEYS, HELP_KEYS, SYSTEM_KEYS
from ladechat.own_keys import IDS, SCREENS, in_own_keys, own_keys, with_own_keys
from ladechat.widgets.prompt.prompt import Prompt

PROMPT_KEYS = [one for one in (*TextArea.BINDINGS, *Prompt.BINDINGS) if isinstance(one, Binding)]
ALL_SCREENS: dict[str, Sequence[Binding]] = {
    **SCREENS, "the help": HELP_KEYS, "explained": EXPLAIN_KEYS, "the system prompt": SYSTEM_KEYS
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("F11", "f11"),
        ("Alt+O", "alt+o"),
        ("ctrl+s", "ctrl+s"),
        ("alt+Page Up", "alt+pageup"),
        ("Shift+←, f11", "shift+left,f11"),
        ("alt+/", "alt+slash"),
        ("shift+f5", "shift+f5"),
    ],
)
def test_a_key_is_written_as_on_keyboards_or_as_textual_names_it(written: str, named: str) -> None:
    assert own_keys({"conversations": written}) == ({"conversations": named}, {})


@pytest.mark.parametrize("key", ["p", "P", ".", "question_mark", "space"])
def test_what_acts_in_an_empty_prompt_may_be_a_character_and_nothing_else(key: str) -> None:
    assert own_keys({"pause": "P", "slower": "-"})[0] == {"pause": "P", "slower": "minus"}
    keymap, refused = own_keys({"find": key})
    assert keymap == {} and refused["find"].startswith("find: ") and "would be typed" in refused["find"]


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"konversations": "f11"}, "no key is called 'konversations'; there are stop, "),
        ({"quit": "hyperspace"}, "quit: 'hyperspace' is no key; keys are written as f5, "),
        ({"quit": "ctrl+"}, "quit: 'ctrl+' is no key"),
        ({"quit": ""}, "quit: '' is no key"),
        ({"quit": "cmd+q"}, "quit: 'cmd+q' is no key"),
        ({"new": "Ctrl+R"}, "new: Ctrl+R is ‘"),
        ({"new": "Esc"}, "new: Esc is ‘"),
        ({"new": "ctrl+i"}, "new: Tab is ‘Complete’ in the chat."),
        ({"new": "ctrl+w"}, "new: Ctrl+W is ‘Delete left to start of word’ in the chat."),
        ({"pause": "n"}, "pause: n is ‘Next question’ in a replay."),
        ({"quit": "ctrl+s"}, "quit: Ctrl+S is ‘Save’ in the settings."),
        ({"record": "f11", "race": "f11"}, "race: F11 is ‘Rec’ in the chat."),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(wanted: Mapping[str, str], named: str) -> None:
    keymap, refused = own_keys(wanted, PROMPT_KEYS)
    *_, last = wanted
    assert list(refused) == [last] and named in refused[last]
    assert last not in keymap and len(keymap) == len(wanted) - 1


def test_two_actions_change_places_and_what_shared_a_key_may_share_another() -> None:
    swapped = {"find": "ctrl+o", "conversations": "ctrl+f"}
    assert own_keys(swapped) == (swapped, {})
    together = {"stop": "f11", "leave_editing": "f11"}
    assert own_keys(together) == (together, {})


KEYS = ["f1", "f5", "f11", "alt+o", "ctrl+o", "ctrl+f", "ctrl+s", "ctrl+w", "escape", "left", "right", "n", "?"]
WRITTEN = st.one_of(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(",".join), st.text(max_size=6))


def meanings(keymap: Mapping[str, str]) -> set[tuple[str, str, str]]:
    """For each screen, the pairs of actions that share a key; those of the prompt alone are no matter of the user's."""
    found = set()
    for place, table in {**ALL_SCREENS, "the chat": (*SCREENS["the chat"], *PROMPT_KEYS)}.items():
        actions: dict[str, list[Binding]] = {}
        for one in table:
            for key in set(in_own_keys(one, keymap).key.split(",")):
                actions.setdefault(key, []).append(one)
        for sharing in actions.values():
            pairs = (pair for pair in combinations(sharing, 2) if not all(one in PROMPT_KEYS for one in pair))
            found |= {(place, one.action, other.action) for one, other in pairs}
    return found


@given(st.dictionaries(st.sampled_from([*IDS, "nonesuch"]), WRITTEN, max_size=6))
@example({"help": "f5", "restart": "f11", "decoder": "f1"})
@example({"restart": "nonesuch", "help": "f5"})
def test_whatever_is_wanted_no_key_gets_a_second_meaning(wanted: dict[str, str]) -> None:
    keymap, refused = own_keys(wanted, PROMPT_KEYS)
    assert keymap.keys() | refused.keys() == wanted.keys() and not keymap.keys() & refused.keys()
    assert meanings(keymap) <= meanings({})
    assert own_keys(keymap, PROMPT_KEYS) == (keymap, {}), "what holds, holds alone too"


def test_an_action_of_the_chat_has_the_same_keys_on_every_screen() -> None:
    of_chat = {one.id: one.key for one in SCREENS["the chat"]}
    assert sorted(map(str, of_chat)) == sorted(IDS)
    for table in ALL_SCREENS.values():
        assert {one.id: one.key for one in table if one.id in of_chat}.items() <= of_chat.items()


class Owner(App[None]):
    keymap: dict[str, str]


def test_sentences_name_the_users_keys_and_nothing_else_in_them_changes() -> None:
    app = Owner()
    said = "F5 starts it again (Esc). Why? Ctrl+R asks it again; F50 and F5x are others. ? explains"
    app.keymap = {}
    assert with_own_keys(said, app) == said
    app.keymap = {"restart": "ctrl+r", "again": "f5", "stop": "f11,alt+s", "explain": "alt+question_mark"}
    app.keymap |= {"clear": "f9", "leave_steps": "f12"}
    assert with_own_keys(said, app) == (
        "Ctrl+R starts it again (F11). Why? F5 asks it again; F50 and F5x are others. Alt+? explains"
    )
