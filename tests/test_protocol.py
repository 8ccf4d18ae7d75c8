"""The contract: what is encoded comes back, readers skip what is new and refuse what is wrong."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import inspect

from ladechat import protocol
from ladechat.protocol import (
    COMMANDS,
    EVENTS,
    Command,
    Configure,
    Event,
    Failed,
    Generate,
    Message,
    ProtocolError,
    Settings,
    SettingsApplied,
    Shutdown,
    Stop,
    decode_command,
    decode_event,
    encode,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
AWKWARD = '\u2028\u2029\x85\x1e\x0b\r\n\t"\\\x00\x7fé漢𝔸🙂\ud7ff\ue000\uffff'


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Every value that a field of this type may have."""
    match kind:
        case inspect.IntType(ge=ge, le=le, lt=lt):
            most = 2**63 - 1 if le is None else le
            return st.integers(-(2**63) if ge is None else ge, most if lt is None else lt - 1)
        case inspect.FloatType(ge=ge, gt=gt, le=le, lt=lt):
            return st.floats(
                gt if ge is None else ge,
                lt if le is None else le,
                exclude_min=gt is not None,
                exclude_max=lt is not None,
                allow_nan=False,
                allow_infinity=False,
            )
        case inspect.StrType():
            return TEXT
        case inspect.BytesType():
            return st.binary(max_size=9)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.ListType(item_type=item):
            return st.lists(values(item), max_size=3)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key), values(value), max_size=3)
        case inspect.UnionType(types=kinds):
            return st.one_of(*(values(each) for each in kinds))
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: values(field.type) for field in fields}).map(fitting)
    if isinstance(kind, inspect.Metadata):
        return values(kind.type)
    raise AssertionError(f"The protocol has a type that this test does not know: {kind}")


def fitting(value: Any) -> Any:
    """The same with its fields cut to fit each other, as they have to."""
    match value:
        case protocol.DraftTree():
            parents = [min(max(parent, -1), node - 1) for node, parent in enumerate(value.parents)]
            value = msgspec.structs.replace(value, parents=parents)
            return cut(value, "token_ids", "pieces", "parents", "sources", "verdicts")
        case protocol.WindowView():
            value = cut(cut(value, "rows", "row_ids"), "fresh", "fresh_ids")
            widths = [min(len(row), len(ids)) for row, ids in zip(value.rows, value.row_ids, strict=True)]
            rows = [row[:width] for row, width in zip(value.rows, widths, strict=True)]
            row_ids = [ids[:width] for ids, width in zip(value.row_ids, widths, strict=True)]
            return msgspec.structs.replace(value, rows=rows, row_ids=row_ids)
        case protocol.LensView():
            value = msgspec.structs.replace(value, layers=sorted(set(value.layers)))
            value = cut(value, "layers", "rows", "row_ids")
            if not value.layers:
                return msgspec.structs.replace(value, layers=[3], rows=[["a"]], row_ids=[[1]])
            width = min(map(len, (*value.rows, *value.row_ids)))
            rows, row_ids = ([row[:width] for row in each] for each in (value.rows, value.row_ids))
            return msgspec.structs.replace(value, rows=rows, row_ids=row_ids)
        case protocol.Candidate():
            value = cut(value, "token_ids", "pieces")
            return msgspec.structs.replace(value, matched=min(value.matched, len(value.pieces)))
        case protocol.PoolView():
            return msgspec.structs.replace(value, hits=min(value.hits, value.lookups))
        case protocol.Step():
            value = cut(value, "token_ids", "pieces", "logprobs", "origins")
            one = {"token_ids": [1], "pieces": [""], "logprobs": [0.0], "origins": ["model"]}
            value = value if value.token_ids else msgspec.structs.replace(value, **one)
            tokens = len(value.token_ids)
            rivals = value.rivals[:tokens] if len(value.rivals) >= tokens else []
            return msgspec.structs.replace(value, reasoning=min(value.reasoning, tokens), rivals=rivals)
        case protocol.Rivals():
            return cut(value, "pieces", "logprobs")
        case protocol.TurnFinished():
            tokens = len(value.token_ids)
            untimed = min(value.untimed_tokens, tokens)
            return msgspec.structs.replace(value, pass_tokens=[tokens], untimed_tokens=untimed)
        case protocol.PassCosts():
            return msgspec.structs.replace(value, costs=rising_by_slots(value.costs))
        case protocol.PolicyChoice():
            rising = {name: rising_by_slots(getattr(value, name)) for name in ("costs", "expected")}
            return msgspec.structs.replace(value, **rising)
        case protocol.TurnStarted():
            messages = value.messages or [Message(role="user", content="a")]
            most = len(value.prompt_ids)
            cached, continued = min(value.cached_tokens, most), min(value.continued_tokens, most)
            changes = {"messages": messages, "cached_tokens": cached, "continued_tokens": continued}
            return msgspec.structs.replace(value, **changes)
        case protocol.Parameter():
            if isinstance(value.default, bool):
                return value
            least, default, most = sorted((value.least, value.default, value.most))
            return msgspec.structs.replace(value, least=least, default=default, most=most)
        case protocol.DecoderInfo():
            return msgspec.structs.replace(value, parameters=list({one.name: one for one in value.parameters}.values()))
    return value


def cut(value: Any, *lists: str) -> Any:
    """The same with these lists cut to the length of the shortest."""
    length = min(len(getattr(value, name)) for name in lists)
    return msgspec.structs.replace(value, **{name: getattr(value, name)[:length] for name in lists})


def rising_by_slots(points: list[Any]) -> list[Any]:
    return [point for _, point in sorted({point.slots: point for point in points}.items())]


def any_of(kinds: dict[str, type[Any]]) -> st.SearchStrategy[Any]:
    return st.one_of(*(values(inspect.type_info(cls)) for cls in kinds.values()))


@given(any_of(COMMANDS))
def test_a_command_survives_the_wire(command: Command) -> None:
    assert decode_command(encode(command)) == command


@given(any_of(EVENTS))
def test_an_event_survives_the_wire(event: Event) -> None:
    assert decode_event(encode(event)) == event


@given(st.one_of(any_of(COMMANDS), any_of(EVENTS)))
def test_a_message_is_one_line_of_ascii_json(message: Command | Event) -> None:
    line = encode(message)
    assert line.isascii()
    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) == 1
    assert isinstance(json.loads(line), dict)


def test_no_character_of_a_text_splits_a_line_or_changes() -> None:
    command = Generate(turn=1, messages=[Message(role="user", content=AWKWARD)])
    line = encode(command)
    assert len(line.decode("ascii").splitlines()) == 1
    assert decode_command(line) == command
    assert json.loads(line)["messages"][0]["content"] == AWKWARD


def test_a_kind_is_named_by_its_class_in_snake_case() -> None:
    for tag, cls in {**COMMANDS, **EVENTS}.items():
        assert tag.replace("_", "") == cls.__name__.lower()
    assert json.loads(encode(Stop())) == {"command": "stop"}
    assert json.loads(encode(Failed(code="busy", message="m", hint="h")))["event"] == "failed"


def test_every_message_class_has_a_kind() -> None:
    assert set(COMMANDS.values()) == set(Command.__subclasses__())
    assert set(EVENTS.values()) == set(Event.__subclasses__())


@pytest.mark.parametrize(
    ("decode", "line"),
    [(decode_command, b'{"command":"tune","budget":3}'), (decode_event, b'{"event":"raced","turn":1}\n')],
)
def test_an_unknown_kind_is_skipped(decode: Callable[[bytes], object], line: bytes) -> None:
    assert decode(line) is None


def test_an_unknown_key_is_skipped_at_any_depth() -> None:
    line = b'{"command":"generate","turn":1,"hurry":true,"messages":[{"role":"user","content":"a","mood":[1]}]}'
    assert decode_command(line) == Generate(turn=1, messages=[Message(role="user", content="a")])


def test_a_missing_optional_key_takes_its_default() -> None:
    assert decode_command(b'{"command":"configure","decoder":"magic"}') == Configure(decoder="magic")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"hello",
        b"[]",
        b"null",
        b'"stop"',
        b"{}",
        b'{"command":7}',
        b'{"event":"step"}',
        b'{"command":"stop"',
        b'{"command":"stop"} {"command":"stop"}',
        b'{"command":"\xff"}',
    ],
)
def test_what_is_not_a_command_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_command(line)


NESTED = b"[" * 100_000


@pytest.mark.parametrize(
    ("decode", "line"),
    [
        (decode_command, b'{"command":' + NESTED),
        (decode_command, b'{"command":"stop","why":' + NESTED),
        (decode_command, b'{"command":"configure","settings":' + NESTED),
        (decode_event, NESTED),
        (decode_event, b'{"event":"step","turn":1,"mood":' + NESTED),
        (decode_event, b'{"event":"settings_applied","settings":' + b'{"a":' * 100_000),
    ],
    ids=["its kind", "a key that is skipped", "settings", "no object", "a key of an event", "settings of an event"],
)
def test_a_line_that_is_nested_too_deeply_is_refused_as_any_other(
    decode: Callable[[bytes], object], line: bytes
) -> None:
    with pytest.raises(ProtocolError):
        decode(line)


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"window": "7"}},
        {"parameters": {"window": 7.5}},
        {"parameters": [7]},
        {"decoder": 3},
        {"temperature": -1},
        {"top_p": 0},
        {"seed": -1},
    ],
)
def test_a_setting_of_another_type_or_out_of_range_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match=next(iter(fields))):
        decode_command(json.dumps({"command": "configure", **fields}).encode())


def test_steps_are_counted_on_only_from_where_every_step_has_an_index() -> None:
    """A reader of the events takes numbers up to 2⁵³ − 1, and would refuse the second step of an answer from there."""
    command = {"command": "generate", "turn": 1, "messages": []}
    last = 2**52 - 1
    read = decode_command(json.dumps({**command, "first_step": last}).encode())
    assert isinstance(read, Generate) and read.first_step == last
    for refused in (last + 1, 2**53 - 1, -1):
        with pytest.raises(ProtocolError, match="first_step"):
            decode_command(json.dumps({**command, "first_step": refused}).encode())


@pytest.mark.parametrize("missing", ["turn", "messages"])
def test_a_required_key_that_is_missing_is_named(missing: str) -> None:
    message = {"command": "generate", "turn": 1, "messages": []}
    del message[missing]
    with pytest.raises(ProtocolError, match=missing):
        decode_command(json.dumps(message).encode())


@given(any_of(EVENTS), st.data())
def test_a_field_of_another_type_is_refused(event: Event, data: st.DataObject) -> None:
    wire = json.loads(encode(event))
    name = data.draw(st.sampled_from(sorted(set(wire) - {"event"})))
    is_object = name == "server" or isinstance(wire[name], dict)
    wire[name] = "a word" if is_object else {"not": "of any field's type"}
    with pytest.raises(ProtocolError):
        decode_event(json.dumps(wire).encode())


@given(st.binary())
def test_no_line_brings_down_a_reader(line: bytes) -> None:
    for decode in (decode_command, decode_event):
        try:
            message = decode(line)
        except ProtocolError:
            continue
        assert message is None or isinstance(message, Command | Event)


OLD_SETTINGS = {
    "decoder": "lookahead", "window": 7, "ngram": 5, "guesses": 6, "pool_prompt": True, "pool_accepted": False,
    "temperature": 0.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "seed": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        (
            {},
            Settings(
                decoder="lookahead",
                parameters={"window": 7, "ngram": 5, "guesses": 6, "pool_prompt": True, "pool_accepted": False},
                temperature=0.5,
            ),
        ),
        ({"auto": True}, Settings(decoder="auto", temperature=0.5)),
        ({"auto": True, "decoder": "jacobi"}, Settings(decoder="jacobi", parameters={"window": 7}, temperature=0.5)),
        (
            {"decoder": "prompt_lookup"},
            Settings(decoder="prompt_lookup", parameters={"window": 7, "ngram": 5}, temperature=0.5),
        ),
        ({"decoder": "autoregressive"}, Settings(decoder="autoregressive", temperature=0.5)),
    ],
)
def test_settings_of_protocol_1_and_2_are_read(changes: dict[str, Any], settings: Settings) -> None:
    line = {"event": "settings_applied", "seq": 1, "t": 0.5, "settings": {**OLD_SETTINGS, **changes}}
    assert decode_event(json.dumps(line).encode()) == SettingsApplied(seq=1, t=0.5, settings=settings)


@pytest.mark.parametrize("damage", [{"window": "seven"}, {"decoder": None}, {"decoder": [1]}, {"temperature": "hot"}])
def test_damaged_settings_of_protocol_2_are_refused(damage: dict[str, Any]) -> None:
    line = {"event": "settings_applied", "seq": 1, "t": 0.5, "settings": {**OLD_SETTINGS, **damage}}
    with pytest.raises(ProtocolError):
        decode_event(json.dumps(line).encode())


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Shutdown().turn = 1  # type: ignore[attr-defined]  # what must fail
    with pytest.raises(AttributeError):
        Generate(turn=1, messages=[]).turn = 2  # type: ignore[misc]  # the same


def test_settings_have_the_same_fields_as_configure() -> None:
    named = {field.name for field in msgspec.structs.fields(protocol.Settings)}
    assert named == {field.name for field in msgspec.structs.fields(Configure)}
