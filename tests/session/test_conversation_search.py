"""A phrase, or words, found in conversations: which come first, and where it is that they say it."""

from dataclasses import replace
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
        ("pool of n", (0, True, True, "pool of n", "A store, the pool of n-grams.")),
        ("n-grams store", (0, True, True, "n-grams", "A store, the pool of n-grams.")),
        ("AND NOW", (1, False, True, "And now", "And now?")),
        ("title", None),
        ("nowhere", None),
        ("", None),
    ],
)
def test_a_place_is_where_the_phrase_is_written_first_or_a_word_of_it(
    typed: str, place: tuple[int, bool, bool, str, str] | None
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


def test_other_variants_are_searched_too_but_nothing_that_was_deleted() -> None:
    talk = kept(("One?", "A lighthouse."), ("Two?", "A pool."))
    tree = talk.tree
    for question, answer in (("Two?", "A window."), ("Three?", "A pool again.")):
        tree.add(exchange(question, answer), tree.path[-1] if question == "Three?" else 0)
    tree.add(exchange("Two?", "An anchor."), 0)
    assert talk.exchanges[-1].answer == "An anchor."
    window, pool = place_of(talk, "window"), place_of(talk, "pool")
    assert window is not None and (window.exchange, window.answer, window.shown) == (2, True, False)
    assert pool is not None and pool.exchange == 1
    assert ScannedConversations([talk]).find("a pool again") == [talk]
    tree.show(2)
    tree.delete(2)
    without = replace(talk)  # as read anew
    for phrase in ("pool", "pool again"):  # what follows a deleted answer is gone with it
        place = place_of(without, phrase)
        assert place is not None and place.exchange == 1
    assert not ScannedConversations([without]).find("window")


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


@pytest.mark.parametrize(
    ("answer", "excerpt"),
    [
        ("An answer with a lighthouse in it.", "An answer with a lighthouse in it."),
        ("Before all of these unusual words a lighthouse, and behind it many others.",
         "these unusual words a lighthouse, and behind it many"),
        (f"{30 * 'a'}lighthouse{30 * 'b'}", f"{25 * 'a'}lighthouse{25 * 'b'}"),
    ],
)  # fmt: skip
def test_an_excerpt_begins_and_ends_with_whole_words_where_it_can(answer: str, excerpt: str) -> None:
    place = place_of(kept(("Well?", answer)), "lighthouse")
    assert place is not None and place.excerpt == excerpt


def test_the_title_is_the_first_paragraph_of_the_question() -> None:
    question = "Sum up talk.md,\nplease.\n\ntalk.md:\n```md\n# A talk\n```"
    assert kept((question, "Yes.")).title == "Sum up talk.md, please."
