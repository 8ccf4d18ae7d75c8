"""A phrase, or words, found in conversations: which come first, and where it is that they say it."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.search import ScannedConversations, place_of
from tests.session.conversations import exchange, saved


def kept(*said: tuple[str, str], title: str = "") -> SavedConversation:
    return saved(Path("a.jsonl"), *(exchange(*one) for one in said), title=title)


SCATTERED = kept(("What is a pool?", "It has n-grams of the text."))
PHRASE = kept(("And now?", "A store, the pool of n-grams."))
OTHER = kept(("Hello?", "Hi."))


def test_conversations_with_the_phrase_come_first_and_then_those_with_all_its_words() -> None:
    search = ScannedConversations([SCATTERED, OTHER, PHRASE])
    assert search.find("pool of N-GRAMS") == [PHRASE, SCATTERED]
    assert search.find("grams  pool") == [SCATTERED, PHRASE] and search.find("") == [SCATTERED, OTHER, PHRASE]


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("pool of n", (1, "pool of n", "A store, the pool of n-grams.")),
        ("n-grams store", (1, "n-grams", "A store, the pool of n-grams.")),
        ("AND NOW", (2, "And now", "And now?")),
        ("title", None),
        ("nowhere", None),
        ("", None),
    ],
)
def test_a_place_is_where_the_phrase_is_written_first_or_a_word_of_it(
    typed: str, place: tuple[int, str, str] | None
) -> None:
    talk = kept(("Well?", "A store, the pool of n-grams."), ("And now?", "The pool of n-grams."), title="A title")
    assert place_of(talk, typed) == place


def test_a_title_is_searched_too_and_what_it_says_has_no_place_in_the_texts() -> None:
    talk = kept(("What is kept?", "N-grams: the pool is a store."), title="The pool")
    assert (
        ScannedConversations([OTHER, talk]).find("the pool")
        == ScannedConversations([talk]).find("pool store")
        == [talk]
    )
    assert place_of(talk, "pool") is None
    found = place_of(talk, "pool store")
    assert found is not None and found.text == "store"
    titled = kept(("One?", "Two."), title="The pool")
    assert ScannedConversations([titled, OTHER]).find("pool") == [titled]


def test_a_phrase_may_go_on_in_the_next_line_and_in_no_other_message() -> None:
    talk = kept(("One two", "three\nfour"))
    assert ScannedConversations([talk]).find("three four") == [talk]
    found = place_of(talk, "three four")
    assert found is not None and found.text == "three\nfour" and found.excerpt == "three four"
    apart = place_of(talk, "two three")
    assert apart is None or apart.text != "two three"


def test_a_word_is_found_where_capitals_are_longer() -> None:
    talk = kept(("?", f"{40 * 'ß'} In der Straße steht ein Haus."))
    place = place_of(talk, "STRASSE steht")
    assert place is not None and place.text == "Straße steht" and place.excerpt.endswith("Straße steht ein Haus.")


words = st.text("abß \n", max_size=4)


@given(st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=3), max_size=4), st.text("abß ", max_size=6))
def test_what_is_typed_letter_by_letter_and_taken_back_finds_what_it_finds_at_once(
    said: list[list[tuple[str, str]]], typed: str
) -> None:
    talks = [kept(*one) for one in said]
    search = ScannedConversations(talks)
    for end in (*range(len(typed) + 1), *range(len(typed), -1, -1)):
        found = search.find(typed[:end])
        assert list(map(id, found)) == list(map(id, ScannedConversations(talks).find(typed[:end])))
        looked = typed[:end].casefold().split()
        assert {id(one) for one in found} == {id(one) for one in talks if all(word in one.folded for word in looked)}
