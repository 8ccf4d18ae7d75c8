"""A conversation is a tree: whatever is edited, asked again or deleted, the branch that is shown is saved and sent, and
nothing is lost.
"""

import itertools
import json
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ladechat.protocol import Generate
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.saved import Branch, read
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import exchange, write
from tests.session.test_conversation import finished

Branches = tuple[str, ...]
"""The questions up to one, which all differ."""


def answer(conversation: Conversation, command: Generate) -> None:
    """Answer a question by itself, in capitals."""
    text = command.messages[-1].content.upper()
    conversation.answered(finished(command.turn, text, (len(text), command.turn)), "auto")


def questions(conversation: Conversation) -> list[str]:
    return [one.question for one in conversation.exchanges]


def variants(conversation: Conversation, place: int) -> list[str]:
    """The questions that stand in one place."""
    tree = conversation.tree
    return [tree.exchanges[one].question for one in tree.variants[tree.parents[tree.path[place]]]]


class PlainLists(RuleBasedStateMachine):
    """A conversation that is saved, beside lists of questions that only say what is shown."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self.open_store(None)
        self.names = map(str, itertools.count())
        self.asked: list[Branches] = []
        self.deleted: list[Branches] = []
        self.shown: Branches = ()

    def open_store(self, path: Path | None) -> None:
        self.store = ConversationStore(Path(self._temporary.name))
        self.conversation = Conversation(model="demo", store=self.store)
        if path is not None:
            self.conversation.open(next(one for one in self.store.conversations() if one.path == path))

    def teardown(self) -> None:
        self.store.begin_new()
        self._temporary.cleanup()

    def after(self, branch: Branches) -> list[Branches]:
        """What stands after a question, without what was deleted."""
        return [one for one in self.asked if one[:-1] == branch and one not in self.deleted]

    def show(self, branch: Branches) -> None:
        while later := self.after(branch):
            branch = later[-1]
        self.shown = branch

    @rule(place=st.integers(0, 4), comes=st.booleans())
    def ask(self, place: int, comes: bool) -> None:
        place = min(place, len(self.shown))
        name = next(self.names)
        command = self.conversation.ask(name, place)
        assert [message.content for message in command.messages[::2]] == [*self.shown[:place], name]
        assert all(message.token_ids for message in command.messages[1::2]), "the cache knows what was said"
        if comes:
            answer(self.conversation, command)
            self.shown = (*self.shown[:place], name)
            self.asked.append(self.shown)
        else:
            assert self.conversation.give_up() == name

    @precondition(lambda self: self.shown and self.conversation.unanswered is None)
    @rule()
    def go_on(self) -> None:
        command = self.conversation.go_on([])
        self.conversation.answered(finished(command.turn, "!", (7,)), "auto")

    @precondition(lambda self: self.shown)
    @rule(place=st.integers(0, 4), by=st.sampled_from([-1, 1]))
    def another_variant(self, place: int, by: int) -> None:
        place = min(place, len(self.shown) - 1)
        here = self.after(self.shown[:place])
        assert variants(self.conversation, place) == [branch[-1] for branch in here]
        if len(here) == 1:
            return
        other = here[(here.index(self.shown[: place + 1]) + by) % len(here)]
        tree = self.conversation.tree
        numbers = {exchange.question: number for number, exchange in enumerate(tree.exchanges)}
        left, came = self.conversation.apply(Branch(number=numbers[other[-1]]))
        before = self.shown
        self.show(other)
        assert (*before[: len(before) - left], *(one.exchange.question for one in came)) == self.shown

    @precondition(lambda self: self.shown)
    @rule(place=st.integers(0, 4))
    def delete(self, place: int) -> None:
        place = min(place, len(self.shown) - 1)
        gone, before = self.shown[: place + 1], self.after(self.shown[:place])
        number = self.conversation.tree.path[place]
        left, _ = self.conversation.apply(Branch(number=number, shown=False))
        if place == 0 and len(before) == 1:
            assert left == 0, "the only first question stays"
            return
        at = before.index(gone)
        self.deleted.append(gone)
        others = [*before[:at][-1:], *before[at + 1 :]]
        self.show(others[0]) if others else setattr(self, "shown", gone[:-1])

    @precondition(lambda self: self.deleted)
    @rule()
    def undelete(self) -> None:
        back = self.deleted[-1]
        self.conversation.apply(Branch(number=self.conversation.tree.deleted[-1]))
        self.deleted = [one for one in self.deleted if one != back[: len(one)]]
        self.show(back)

    @precondition(lambda self: self.shown)
    @rule()
    def reopen(self) -> None:
        path = self.store.path
        self.store.begin_new()
        self.open_store(path)

    @invariant()
    def the_branch_is_shown_and_saved_and_nothing_is_lost(self) -> None:
        assert questions(self.conversation) == list(self.shown)
        if self.store.path is not None:
            kept = read(self.store.path)
            assert kept is not None and kept.exchanges == self.conversation.exchanges
            assert kept.tree == self.conversation.tree
            said = {(one.question, one.answer.rstrip("!")) for one in kept.tree.exchanges}
            assert said == {(branch[-1], branch[-1].upper()) for branch in self.asked}


TestPlainLists = PlainLists.TestCase


def three(folder: Path) -> tuple[ConversationStore, Conversation]:
    """A conversation of three questions, of which the second was edited."""
    store = ConversationStore(folder)
    conversation = Conversation(model="demo", store=store)
    for question, place in (("One?", None), ("Two?", None), ("Three?", None), ("Two!", 1)):
        answer(conversation, conversation.ask(question, place))
    return store, conversation


def earlier_version(path: Path) -> list[str]:
    """The questions that a version without variants reads, which skips the lines and keys that it does not know."""
    read: list[str] = []
    for line in map(json.loads, path.read_bytes().splitlines()):
        match line["line"]:
            case "exchange":
                read.append(line["exchange"]["question"])
            case "continued":
                read[-1:] = [line["exchange"]["question"]]
            case "removed":
                del read[-1:]
    return read


def test_an_earlier_version_reads_what_was_asked_last_and_what_it_adds_follows_what_is_shown(tmp_path: Path) -> None:
    store, conversation = three(tmp_path)
    assert store.path is not None and earlier_version(store.path) == questions(conversation) == ["One?", "Two!"]
    conversation.apply(Branch(number=1))
    assert questions(conversation) == ["One?", "Two?", "Three?"] and earlier_version(store.path) == ["One?"]
    with store.path.open("ab") as file:
        file.write(json.dumps({"line": "exchange", "when": "", "exchange": exchange_of("Four?")}).encode() + b"\n")
    kept = read(store.path)
    assert kept is not None and [one.question for one in kept.exchanges] == ["One?", "Two?", "Three?", "Four?"]


def exchange_of(question: str) -> dict[str, object]:
    return {"question": question, "answer": "Yes.", "token_ids": [5], "model": "demo", "decoder": "auto"}


def test_a_file_that_lacks_a_line_is_read_all_the_same(tmp_path: Path) -> None:
    store, conversation = three(tmp_path)
    conversation.apply(Branch(number=1))
    conversation.apply(Branch(number=2, shown=False))
    assert store.path is not None
    lines = store.path.read_bytes().splitlines(keepends=True)
    for gone in range(1, len(lines)):
        store.path.write_bytes(b"".join(line for place, line in enumerate(lines) if place != gone))
        kept = read(store.path)
        assert kept is not None and kept.exchanges


def test_a_branch_that_there_is_none_of_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "a", exchange("One?"), exchange("Two?"))
    for number in (-1, 2, 99):
        for shown in ("true", "false"):
            with path.open("a") as file:
                file.write(f'{{"line":"branch","number":{number},"shown":{shown}}}\n')
    kept = read(path)
    assert kept is not None and [one.question for one in kept.exchanges] == ["One?", "Two?"]


def test_a_copy_has_all_variants(tmp_path: Path) -> None:
    store, conversation = three(tmp_path)
    elsewhere = ConversationStore(tmp_path)
    copy = Conversation(model="demo", store=elsewhere)
    copy.open(elsewhere.conversations()[0])
    assert elsewhere.why_copied
    copy.apply(Branch(number=1))
    answer(copy, copy.ask("Four?"))
    assert questions(copy) == ["One?", "Two?", "Three?", "Four?"] and questions(conversation) == ["One?", "Two!"]
    assert elsewhere.path is not None and elsewhere.path != store.path
    kept = read(elsewhere.path)
    assert kept is not None and kept.tree == copy.tree and kept.title == "One? (copy)"


def test_what_earlier_versions_have_removed_is_a_variant(tmp_path: Path) -> None:
    path = write(tmp_path, "a", exchange("One?"))
    path.write_bytes(path.read_bytes() + b'{"line":"removed"}\n')
    store = ConversationStore(tmp_path)
    conversation = Conversation(model="demo", store=store)
    conversation.open(store.conversations()[0])
    answer(conversation, conversation.ask("Two?", 0))
    assert questions(conversation) == ["Two?"] and variants(conversation, 0) == ["One?", "Two?"]


def test_an_answer_that_goes_on_after_its_question_was_left_and_found_again_is_the_one_that_grows(
    tmp_path: Path,
) -> None:
    store, conversation = three(tmp_path)
    conversation.apply(Branch(number=1))
    conversation.apply(Branch(number=3))
    command = conversation.go_on([])
    assert command.messages[-1].content == "TWO!" and command.turn == 5
    conversation.answered(finished(5, " More.", (9,)), "auto")
    assert store.path is not None
    kept = read(store.path)
    assert kept is not None and [one.answer for one in kept.exchanges] == ["ONE?", "TWO! More."]
