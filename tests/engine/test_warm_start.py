"""What drafting has learnt from answers comes back in the next session, and in none where it was deleted or damaged."""

import os
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.drafter import ROOT, Node, Room
from ladechat.decoder.drafters.recycling import CHANCES, RecyclingDrafter
from ladechat.decoder.drafters.suffix import SuffixDrafter
from ladechat.engine.warm_start import MOST_TOKENS, WarmStart
from ladechat.protocol import Configure, Generate, Message, Settings, SettingsApplied
from ladechat.registry import Shared
from ladechat.saved_drafts import drafts_folder, forget_drafts
from tests.engine.inside import inside
from tests.made_up_costs import free, shared as sharing
from tests.tiny import small_demo
from tests.waiting import wait_for

VOCABULARY = 40
ids = st.integers(0, VOCABULARY - 1)
answers = st.lists(st.lists(ids, max_size=12), max_size=6)


@pytest.fixture(autouse=True)
def _drafts_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def learnt(own: list[list[int]], seed: int = 0) -> Shared:
    """What decoders have learnt from some answers, and from passes with random logits."""
    shared, dice = sharing(free), torch.Generator().manual_seed(seed)
    shared.answers.extend(own)
    for answer in own:
        likeliest = torch.randn(len(answer), VOCABULARY, generator=dice).topk(len(CHANCES)).indices.numpy()
        shared.successors.learn([-1, *answer][: len(answer)], answer, likeliest)
        nodes = [Node(ROOT, token, "suffix", ("suffix", 1), 0.5) for token in answer]
        shared.rates.observe(nodes, answer[:1])
    return shared


def saved(file: Path, own: list[list[int]], seed: int = 0) -> None:
    """Save what was learnt from some answers."""
    shared = learnt(own, seed)
    warm = WarmStart(file, shared, VOCABULARY)
    for answer in own:
        warm.add(answer)
    warm.save()


def proposed(shared: Shared, text: list[int]) -> list[object]:
    """The drafts after a text, and how likely each is taken to be."""
    found: list[object] = []
    for drafter in (SuffixDrafter(texts=shared.answers), RecyclingDrafter(16, shared.successors)):
        drafter.begin(text, len(text))
        nodes = drafter.propose(Room(9, 9)).nodes
        found += [(node, shared.rates(node)) for node in nodes]
    return found


@given(answers, st.lists(ids, min_size=1, max_size=4), st.integers(0, 99))
def test_the_next_session_drafts_what_this_one_would(
    tmp_path_factory: pytest.TempPathFactory, own: list[list[int]], text: list[int], seed: int
) -> None:
    file = tmp_path_factory.mktemp("drafts") / "model"
    saved(file, own, seed)
    again = sharing(free)
    WarmStart(file, again, VOCABULARY)
    assert proposed(again, text) == proposed(learnt(own, seed), text)


def test_a_second_session_takes_fewer_passes_for_the_same_text(tmp_path: Path) -> None:
    passes, texts = [], []
    for _ in range(2):
        with inside(small_demo(), Settings(decoder="suffix"), warm_start=True) as engine:
            steps, _ = engine.ask("How does lookahead decoding work?", max_new_tokens=60)
            wait_for(lambda: any(drafts_folder().glob("*")))
        passes.append(len(steps))
        texts.append([token for step in steps for token in step.token_ids])
    assert texts[0] == texts[1] and passes[1] < passes[0] / 2


def test_without_a_warm_start_nothing_is_saved_and_an_answer_of_a_race_never_is() -> None:
    race = Generate(
        turn=1, messages=[Message(role="user", content="Hello?")], max_new_tokens=4, decoder="suffix", fresh=True
    )
    for warm in (False, True):
        with inside(small_demo(), Settings(decoder="suffix"), warm_start=warm) as engine:
            if not warm:
                engine.ask("Hello?", max_new_tokens=4)
            engine.send(race)
            engine.finish(1)
            engine.send(Configure(decoder="lookahead"))
            engine.until(SettingsApplied)  # the engine has looked for the next command since
        assert not drafts_folder().exists()


def test_sessions_that_share_a_file_add_to_it(tmp_path: Path) -> None:
    file = tmp_path / "model"
    first, second = (WarmStart(file, sharing(free), VOCABULARY) for _ in range(2))
    for warm, answer in ((first, [1, 2, 3]), (second, [4, 5, 6]), (first, [7, 8, 9])):
        warm.add(answer)
        warm.save()
    third = sharing(free)
    WarmStart(file, third, VOCABULARY)
    assert third.answers == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_what_was_deleted_is_not_saved_again(tmp_path: Path) -> None:
    file = drafts_folder() / "model"
    saved(file, [[1, 2, 3]])
    shared = sharing(free)
    warm = WarmStart(file, shared, VOCABULARY)
    forget_drafts()
    assert not file.exists()
    warm.add([7, 8, 9])
    warm.save()
    again = sharing(free)
    WarmStart(file, again, VOCABULARY)
    assert again.answers == [[7, 8, 9]]
    assert not len(again.successors.tables()[0]) and not again.rates.by_kind


def test_only_the_latest_answers_stay_and_only_its_user_reads_them(tmp_path: Path) -> None:
    file, long = tmp_path / "model", [1] * (MOST_TOKENS // 2)
    before = os.umask(0)
    try:
        saved(file, [[2, 3], long, long])
    finally:
        os.umask(before)
    shared = sharing(free)
    WarmStart(file, shared, VOCABULARY)
    assert shared.answers == [long, long] and file.stat().st_mode & 0o777 == 0o600


def test_whatever_saving_raises_the_next_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: WarmStart) -> None:
        raise MemoryError

    monkeypatch.setattr(WarmStart, "save", fails)
    with inside(small_demo(), Settings(decoder="suffix"), warm_start=True) as engine:
        for _ in range(2):
            steps, finished = engine.ask("Hello?", max_new_tokens=4)
            assert steps and finished.reason in ("max_new_tokens", "eos")


def test_a_long_session_holds_no_more_answers_than_are_saved(tmp_path: Path) -> None:
    shared, long = sharing(free), [1] * (MOST_TOKENS // 2)
    warm = WarmStart(tmp_path / "model", shared, VOCABULARY)
    for _ in range(5):
        warm.add(long)
        warm.save()
    assert shared.answers == [long, long]


def damaged(**changes: object) -> bytes:
    """A file of another content."""
    whole = {"answers": [[1, 2]], "after_one": b"", "after_two": b"", "rates": [[["suffix", 1], 0.5, 9.0]]}
    return msgspec.msgpack.encode({**whole, **changes})


ONE = (3).to_bytes(4, "little")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\x93",
        damaged()[:-1],
        damaged(answers=[[1, VOCABULARY]]),
        damaged(answers=[[-1]]),
        damaged(answers="no"),
        damaged(after_one=ONE),
        damaged(after_one=b"\xff\xff\xff\xff" + ONE * len(CHANCES)),
        damaged(after_two=ONE * 3),
        damaged(rates=[[["suffix", 1], 1.5, 9.0]]),
        damaged(rates=[[["suffix", 1], 0.5, 0.0]]),
        damaged(rates=[[["suffix", 1], 0.5]]),
        damaged(more=1),
    ],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(damaged())
    WarmStart(file, usual := sharing(free), VOCABULARY)
    assert usual.answers == [[1, 2]], "it is the change that makes it a damaged one"
    file.write_bytes(content)
    shared = sharing(free)
    warm = WarmStart(file, shared, VOCABULARY)
    assert not shared.answers and (tmp_path / "model.damaged").read_bytes() == content
    warm.add([5, 6])
    warm.save()
    WarmStart(file, again := sharing(free), VOCABULARY)
    assert again.answers == [[5, 6]]


def test_where_nothing_can_be_written_the_session_goes_on(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    warm = WarmStart(tmp_path / "taken" / "model", sharing(free), VOCABULARY)
    warm.add([1, 2])
    warm.save()
    assert (tmp_path / "taken").read_bytes() == b""
