"""Decoders, once as plain data and once as code: both complete, and every parameter has its effect."""

import random
from collections.abc import Mapping, Set
from itertools import pairwise

import pytest

from ladechat import catalog, registry
from ladechat.decoder.drafters.layer_skip import default_skipped
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Capabilities
from ladechat.decoder.step import Draft
from ladechat.model.trained import KINDS
from ladechat.protocol import DecoderInfo, Parameter, Settings, Value
from tests.decoder.table_runner import TableRunner, random_table
from tests.made_up_costs import free, moderate, shared
from tests.made_up_maps import made_up_kinds
from tests.tiny import run, tokens_of
from tests.tuning.clocked import ClockedRunner

NAMES = list(catalog.DECODERS)
PARAMETERS = [(name, parameter) for name in NAMES for parameter in catalog.DECODERS[name].parameters]
each_decoder = pytest.mark.parametrize("name", NAMES)
each_parameter = pytest.mark.parametrize(
    ("name", "parameter"), PARAMETERS, ids=[f"{name}: {parameter.name}" for name, parameter in PARAMETERS]
)
VOCABULARY = 6
"""Few tokens, so that a text repeats itself now and then, and there is something to find in it for everyone."""
PROMPT = random.Random(0).choices(range(VOCABULARY), k=60)


def runner() -> TableRunner:
    table = random_table(VOCABULARY, seed=1)
    table.context_length = 300
    return table


def made(name: str) -> Decoder:
    return registry.make(name, runner(), shared(free, trained=made_up_kinds(1, VOCABULARY)))


def proposed(name: str, parameters: Mapping[str, Value]) -> list[Draft | None]:
    """What a decoder drafts, pass by pass."""
    decoder = made(name)
    decoder.configure(parameters)
    return [step.draft for step in run(decoder, PROMPT, 80)]


def written(limit: int) -> list[int]:
    """By plain decoding."""
    return tokens_of(run(Decoder(runner()), PROMPT, limit))


def test_every_decoder_of_the_catalog_can_be_made_and_no_other_can() -> None:
    assert set(catalog.DECODERS) == set(registry.DECODERS)


@each_decoder
def test_a_decoder_is_described(name: str) -> None:
    info = catalog.DECODERS[name]
    assert info.name == name and info.label and info.help.endswith(".")
    assert info.tree_attention == bool(made(name).drafters), "only drafts need several slots"
    names = [parameter.name for parameter in info.parameters]
    assert len(set(names)) == len(names)


@each_parameter
def test_a_parameter_is_described(name: str, parameter: Parameter) -> None:
    assert parameter.name.isidentifier() and parameter.label and parameter.help.endswith(".")
    assert not parameter.name.startswith("_") and parameter.name not in Settings.__struct_fields__
    assert catalog.problem(parameter, parameter.default) is None


@each_parameter
def test_a_parameter_changes_what_is_proposed(name: str, parameter: Parameter) -> None:
    other: Value = parameter.default + 3 if parameter.default + 3 <= parameter.most else parameter.least
    if isinstance(parameter.default, bool):
        other = not parameter.default
    assert proposed(name, {parameter.name: other}) != proposed(name, {parameter.name: parameter.default})


@each_decoder
def test_a_decoder_is_made_with_the_defaults_of_the_catalog(name: str) -> None:
    assert proposed(name, {}) == proposed(name, catalog.resolved(name, {}))


@each_parameter
def test_each_end_of_a_range_can_be_run_with(name: str, parameter: Parameter) -> None:
    ends: list[Value] = [parameter.least, parameter.most]
    for value in [False, True] if isinstance(parameter.default, bool) else ends:
        assert catalog.problem(parameter, value) is None
        decoder = made(name)
        decoder.configure({parameter.name: value})
        assert tokens_of(run(decoder, PROMPT, 12)) == written(12)


@each_parameter
def test_a_value_out_of_range_is_refused_in_words(name: str, parameter: Parameter) -> None:
    if isinstance(parameter.default, bool):
        assert catalog.problem(parameter, 7) == "has to be on or off, not 7"
        return
    for value in (True, parameter.least - 1, parameter.most + 1):
        sentence = f"has to be from {parameter.least} to {parameter.most}, not {value}"
        assert catalog.problem(parameter, value) == sentence


def test_parameters_that_share_a_name_take_the_same_values() -> None:
    """So that a value that was given for one decoder fits all that have it."""
    for name, first in catalog.parameters().items():
        ranges = {(one.least, one.most, type(one.default)) for _, one in PARAMETERS if one.name == name}
        assert ranges == {(first.least, first.most, type(first.default))}


def test_of_what_was_given_a_decoder_takes_what_it_has_and_defaults_for_the_others() -> None:
    assert catalog.resolved("suffix", {"window": 9}) == {"nodes": 8}
    assert catalog.resolved("suffix", {"nodes": 9}) == {"nodes": 9}


def test_a_decoder_that_chooses_by_itself_names_one_that_is_set_by_hand() -> None:
    for info in catalog.DECODERS.values():
        if info.by_hand is not None:
            assert not info.parameters and catalog.DECODERS[info.by_hand].parameters


def test_no_name_is_taken_twice() -> None:
    with pytest.raises(ValueError, match="There is a decoder 'auto' already"):
        catalog.register(DecoderInfo(name="auto", label="a", help="b."))
    with pytest.raises(ValueError, match="There is a decoder 'auto' already"):
        registry.register("auto", lambda runner, _: Decoder(runner))


def test_a_name_that_nobody_has_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        registry.make("nobody", runner())


def test_a_decoder_says_what_it_needs_and_cannot_be_made_without() -> None:
    assert {info.needs for info in catalog.DECODERS.values()} == {None, *KINDS}
    for info in catalog.DECODERS.values():
        if info.needs is not None:
            with pytest.raises(KeyError, match=info.needs):
                registry.make(info.name, runner(), shared(free))


def test_layers_are_skipped_only_where_they_can_be_run_one_by_one() -> None:
    needing = [info for info in catalog.DECODERS.values() if info.least_layers]
    assert [info.name for info in needing] == ["layer_skip"]
    table = runner()
    table.capabilities = Capabilities(logits_only=None)
    for layers in (0, 1, 2, 9):
        table.layers = layers
        why = registry.why_unusable(needing[0], table, {}, {})
        assert why == (f"At least 2 layers are needed, and it has {layers}." if layers < 2 else None)
    without = ClockedRunner(lambda slots: 1.0)
    assert registry.why_unusable(needing[0], without, {}, {}) == "Its passes give logits alone."
    with pytest.raises(ValueError, match="logits alone"):
        registry.make("layer_skip", without)


def test_layer_skipping_leaves_out_the_layers_that_are_known_to_do_best() -> None:
    asked: list[frozenset[int]] = []

    class Noting(TableRunner):
        def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
            asked.append(frozenset(skipped))
            return super().draft(token, skipped, most, threshold)

    for skipped in (None, frozenset({0, 3})):
        together = shared(free)
        together.skipped = skipped
        run(registry.make("layer_skip", Noting(runner().logits), together), PROMPT[:9], 9)
        assert set(asked) == {default_skipped(TableRunner.layers) if skipped is None else skipped}
        asked.clear()


@pytest.mark.parametrize("window", [True, False])
def test_the_window_of_auto_takes_part_where_slots_are_nearly_free(window: bool) -> None:
    steps = run(registry.make("auto", runner(), shared(free, window)), PROMPT, 20)
    assert {step.window is not None for step in steps} == {window}
    assert tokens_of(steps) == written(20)


def test_auto_drafts_with_all_that_is_at_hand() -> None:
    steps = run(registry.make("auto", runner(), shared(moderate)), PROMPT, 60)
    assert {"suffix", "recycling"} < {source for step in steps if step.draft for source in step.draft.sources}


def test_decoders_of_one_model_have_their_pool_in_common() -> None:
    together = shared(free)
    run(registry.make("lookahead", runner(), together), PROMPT, 30)
    assert len(together.pool) > 0
    first = run(registry.make("auto", runner(), together), PROMPT, 1)[0]
    assert first.pool is not None and first.pool.ngrams >= len(set(pairwise(PROMPT)))
