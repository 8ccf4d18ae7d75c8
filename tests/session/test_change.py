"""What is typed to change a setting: by label or name, and refused in a sentence."""

import pytest

from ladechat import catalog
from ladechat.protocol import Configure, Settings
from ladechat.session.change import SettingRefused, adjustable, change, decoder_named

AUTO, BY_HAND = Settings(decoder="auto"), Settings(decoder="lookahead")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("W", "15", Configure(parameters={"window": 15})),
        ("window", "15", Configure(parameters={"window": 15})),
        ("prompt", "off", Configure(parameters={"pool_prompt": False})),
        ("top-p", "0.9", Configure(top_p=0.9)),
        ("Top_K", "40", Configure(top_k=40)),
        ("seed", "7", Configure(seed=7)),
    ],
)
def test_a_setting_is_named_by_its_label_or_its_name(name: str, text: str, expected: Configure) -> None:
    assert change(name, text, BY_HAND, catalog.DECODERS) == expected


def test_of_a_decoder_that_chooses_by_itself_a_number_means_the_one_by_hand() -> None:
    wanted = Configure(decoder="lookahead", parameters={"window": 9})
    assert change("w", "9", AUTO, catalog.DECODERS) == wanted


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("W", "65", "W has to be from 1 to 64, not '65'."),
        ("W", "", "and none was given"),
        ("temperature", "nan", "a number from 0 to 5, not 'nan'."),
        ("seed", "null", "a whole number, 0 or more, not 'null'."),
        ("W", "7" * 5000, "…'"),
        ("magic", "1", "these can: W, N, G, prompt, text, temperature,"),
    ],
)
def test_what_cannot_be_set_is_refused_in_a_sentence(name: str, text: str, says: str) -> None:
    with pytest.raises(SettingRefused) as refused:
        change(name, text, BY_HAND, catalog.DECODERS)
    assert says in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("decoder", "name", "says"),
    [
        ("medusa", "W", "Medusa has no setting W; it has nodes."),
        ("lookahead", "nodes", "lookahead has no setting nodes; it has W, N, G, prompt, text."),
        ("autoregressive", "n", "plain decoding has no setting N; it has none."),
    ],
)
def test_a_number_of_another_decoder_is_refused_with_those_of_this_one(decoder: str, name: str, says: str) -> None:
    with pytest.raises(SettingRefused) as refused:
        change(name, "5", Settings(decoder=decoder), catalog.DECODERS)
    assert str(refused.value) == says


@pytest.mark.parametrize("settings", [AUTO, BY_HAND])
def test_all_that_is_offered_can_be_set_to_what_it_is(settings: Settings) -> None:
    for one in adjustable(settings, catalog.DECODERS):
        if one.value != "–":
            change(one.name, one.value, settings, catalog.DECODERS)


def test_every_decoder_is_found_by_its_name_and_by_its_label() -> None:
    for info in catalog.DECODERS.values():
        assert decoder_named(info.name, catalog.DECODERS) is decoder_named(info.label, catalog.DECODERS) is info
    with pytest.raises(SettingRefused, match="there are auto, lookahead"):
        decoder_named("magic", catalog.DECODERS)
