"""What a processor, a criterion or a streamer raises comes out as it is; where nothing is left, as in `generate`."""

from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from ladechat import lookahead_generate
from tests.generate.requests import PROMPT, Collected, assert_as_generate, generate, handed_on, lookahead
from tests.tiny import new_model, random_model

REQUEST: dict[str, Any] = {"max_new_tokens": 9, "pad_token_id": 0, "eos_token_id": []}


class Raises(LogitsProcessor, StoppingCriteria, Collected):
    """Whatever it is, it raises an error the fourth time that it is asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.asked = error, 0

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        self.put(input_ids)
        return scores if isinstance(scores, torch.Tensor) else torch.zeros(len(input_ids), dtype=torch.bool)

    def put(self, value: torch.Tensor) -> None:
        self.asked += 1
        if self.asked == 4:
            raise self.error


ERRORS = [FloatingPointError("of my own"), StopIteration("enough"), ValueError("mine"), KeyError("x")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["logits_processor", "stopping_criteria", "streamer"])
def test_an_error_of_the_callers_own_comes_out_as_it_is(name: str, error: Exception) -> None:
    one = Raises(error)
    given: Any = {"logits_processor": LogitsProcessorList, "stopping_criteria": StoppingCriteriaList}
    request = {**REQUEST, name: given[name]([one]) if name in given else one}
    with pytest.raises(type(error)) as raised:
        lookahead(random_model(1), PROMPT, **request)
    assert raised.value is error and one.asked == 4


class Nothing(LogitsProcessor):
    """Leaves no token from the third on."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores if input_ids.shape[1] < 10 else torch.full_like(scores, -torch.inf)


def test_where_no_token_is_left_it_is_done_as_generate_does_it() -> None:
    request = {**REQUEST, "logits_processor": LogitsProcessorList([Nothing()])}
    assert_as_generate(random_model(1), PROMPT, **request)
    errors = []
    for ask in (generate, lookahead):
        with pytest.raises(RuntimeError) as raised:
            ask(random_model(1), PROMPT, **request, do_sample=True)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def overflowing() -> PreTrainedModel:
    """A model whose logits are not numbers after token 93, which the check of a model does not meet."""
    model: Any = new_model(1)
    model.lm_head.weight.data[:] = 0
    model.lm_head.weight.data[93] = 1
    model.lm_head.bias = torch.nn.Parameter(torch.zeros(97))
    model.model.embed_tokens.weight.data[93] = torch.inf
    with torch.no_grad():
        model.lm_head.bias[93] = 1e4
    return model  # type: ignore[no-any-return]


def test_logits_that_are_not_numbers_any_more_are_written_as_generate_writes_them() -> None:
    with handed_on("logits are not numbers"):
        assert_as_generate(overflowing(), PROMPT, **REQUEST)
    with pytest.raises(ValueError, match="logits are not finite"):
        lookahead_generate(overflowing(), PROMPT, **REQUEST, streamer=Collected())
