"""Another model in a session: nothing is lost where there is no such model, or where it cannot be loaded."""

from functools import partial

import pytest

from ladechat import protocol
from ladechat.protocol import Failed, Loading, Settings
from ladechat.session.engine import State
from tests.fake_engine import FakeEngine
from tests.session.test_session import Room


class Choosing:
    """A screen where models are chosen."""

    def __init__(self, room: Room) -> None:
        self.taken: list[str] = []
        self.replaced: list[str] = []
        self.refused: list[tuple[str, str]] = []
        room.session.model_taken, room.session.model_refused = self.model_taken, self.model_refused
        self.room = room

    def model_taken(self, model: str, replaced: str) -> None:
        self.taken.append(model)
        self.replaced.append(replaced)

    def model_refused(self, model: str, why: Failed) -> None:
        self.refused.append((model, why.message))

    async def answered(self, question: str) -> None:
        self.room.session.ask(question)
        await self.room.until(lambda: not self.room.session.asking)


async def chosen(*engines: FakeEngine) -> tuple[Room, Choosing]:
    """A session in which one question was answered, and another model is being looked for."""
    room = Room(*engines)
    choosing = Choosing(room)
    await room.reach(State.READY)
    await choosing.answered("One?")
    assert room.session.use_model("owner/other", room._new_engine)
    return room, choosing


async def test_while_a_model_is_looked_for_the_one_that_is_there_answers_and_stays_where_it_is_refused() -> None:
    old, new = FakeEngine(), FakeEngine(hold_loading=True)
    room, choosing = await chosen(old, new)
    await choosing.answered("Two?")
    events = len(room.screen.events)
    new.fail_fatally()
    await room.until(lambda: bool(choosing.refused))
    assert choosing.refused == [("owner/other", "The weights are torn.")] and choosing.taken == []
    (reason,) = room.screen.events[events:]
    assert isinstance(reason, Failed) and reason.message == "The weights are torn." and not reason.fatal
    assert room.state is State.READY and not old.closed
    await choosing.answered("Three?")
    assert len(old.questions) == 3 and len(old.questions[2].messages) == 5
    await room.until(lambda: new.closed)
    await room.session.close()


async def test_a_model_that_is_found_takes_over_and_answers_the_whole_conversation() -> None:
    old, new = FakeEngine(), FakeEngine()
    room, choosing = await chosen(old, new)
    await room.until(lambda: choosing.taken == ["owner/other"] and room.state is State.READY)
    await choosing.answered("Two?")
    assert new.questions[0].messages[1].token_ids is None
    await room.until(lambda: old.closed)
    await room.session.close()


@pytest.mark.parametrize(("requested", "expected"), [("suffix", "suffix"), ("hidden_transfer", "auto")])
async def test_what_is_set_while_a_model_is_looked_for_holds_for_it_if_it_has_that_decoder(
    requested: str, expected: str
) -> None:
    old, new = FakeEngine(), FakeEngine(hold_loading=True)
    room, choosing = await chosen(old, new)
    room.session.configure(protocol.Configure(decoder=requested, temperature=0.5, parameters={"nodes": 3}))
    new._say(Loading(stage=2, stages=2, doing="reading the weights"))
    await room.until(lambda: bool(choosing.taken))
    await room.until(lambda: new.settings.temperature == 0.5)
    assert (new.settings.decoder, new.settings.parameters) == (expected, {"nodes": 3})
    assert room.session.requested == new.settings
    await room.session.close()


@pytest.mark.parametrize(("decoder", "then"), [("lookahead", "auto"), ("suffix", "suffix")])
async def test_another_model_begins_with_its_own_decoder_unless_another_one_was_chosen(decoder: str, then: str) -> None:
    room = Room(FakeEngine(), FakeEngine(), FakeEngine())
    room.session.conversation.use_model("demo")
    choosing = Choosing(room)
    await room.reach(State.READY)
    room.session.configure(protocol.Configure(decoder=decoder))
    for model, expected in (("owner/other", then), ("demo", decoder)):
        assert room.session.use_model(model, room._new_engine)
        await room.until(partial(lambda model: choosing.taken[-1:] == [model] and room.state is State.READY, model))
        assert room.session.requested.decoder == expected
    assert choosing.replaced == (["lookahead", "auto"] if decoder == "lookahead" else ["", ""])
    await room.session.close()


async def test_a_model_that_is_found_and_cannot_be_loaded_gives_way_to_the_one_before() -> None:
    old, new, again = FakeEngine(), FakeEngine(hold_loading=True), FakeEngine()
    room = Room(old, new, again)
    choosing = Choosing(room)
    await room.reach(State.READY)
    room.session.configure(protocol.Configure(decoder="hidden_transfer"))
    await choosing.answered("One?")
    assert room.session.use_model("owner/torn", room._new_engine)
    new._say(Loading(stage=2, stages=2, doing="reading the weights"))
    await room.until(lambda: choosing.taken == ["owner/torn"])
    assert room.session.requested.decoder == Settings().decoder
    room.session.ask("Two?")
    new.fail_fatally()
    await room.until(lambda: choosing.taken == ["owner/torn", ""] and room.state is State.READY)
    assert choosing.refused == [("owner/torn", "The weights are torn.")]
    assert room.settings[-1].decoder == "hidden_transfer" and room.screen.given_back == ["Two?"]
    await choosing.answered("Two?")
    sent = again.questions[0].messages
    assert [message.content for message in sent][::2] == ["One?", "Two?"] and sent[1].token_ids
    await room.session.close()


async def test_where_the_first_model_cannot_be_loaded_another_one_answers_instead() -> None:
    torn, other = FakeEngine(hold_loading=True), FakeEngine()
    room = Room(torn, other, way_back="lookahead")
    choosing = Choosing(room)
    await room.reach(State.LOADING)
    room.session.ask("One?")
    torn.fail_fatally()
    await room.until(lambda: choosing.taken == ["demo"] and room.state is State.READY)
    assert choosing.refused == [("owner/torn", "The weights are torn.")]
    assert room.settings[-1].decoder == "lookahead" and room.screen.given_back == ["One?"]
    await choosing.answered("One?")
    other.fail_fatally()
    await room.reach(State.ENDED)
    assert choosing.taken == ["demo"], "there is no other to go back to"
    await room.session.close()


async def test_a_second_choice_takes_the_place_of_one_that_is_still_looked_for() -> None:
    old, slow, right = FakeEngine(), FakeEngine(hold_loading=True), FakeEngine()
    room, choosing = await chosen(old, slow, right)
    assert room.session.use_model("owner/right", room._new_engine)
    await room.until(lambda: choosing.taken == ["owner/right"])
    await room.until(lambda: slow.closed and old.closed)
    assert choosing.refused == []
    await room.session.close()


async def test_a_stop_ends_the_answer_first_and_then_the_search_for_a_model() -> None:
    old, new = FakeEngine(hold_steps=True), FakeEngine(hold_loading=True)
    room = Room(old, new)
    choosing = Choosing(room)
    await room.reach(State.READY)
    assert room.session.use_model("owner/other", room._new_engine)
    room.session.ask("One?")
    await room.reach(State.ANSWERING)
    room.session.stop()
    await room.until(lambda: not room.session.asking)
    assert (room.session.looking_for, room.session.can_stop) == ("owner/other", True)
    room.session.stop()
    assert (room.session.looking_for, room.session.can_stop) == ("", False)
    await room.until(lambda: new.closed)
    assert choosing.taken == [] and choosing.refused == [] and room.state is State.READY
    await room.session.close()


async def test_leaving_ends_an_engine_that_still_looks_for_its_model() -> None:
    old, new = FakeEngine(), FakeEngine(hold_loading=True)
    room, _ = await chosen(old, new)
    await room.session.close()
    assert old.closed and new.closed
