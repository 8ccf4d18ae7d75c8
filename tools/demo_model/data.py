"""Training data: conversations as token ids, cut into sequences of one length, without end and from any point on."""

from collections.abc import Iterator
from itertools import islice

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.demo_model.conversations import conversations
from tools.demo_model.dialogue import Exchange
from tools.demo_model.tokenizer import ANSWER, END

QUESTION_WEIGHT = 0.1
"""What a token of the user's counts in the loss. The model is to read questions; it hardly needs to write them."""

CONVERSATIONS_AT_ONCE = 400


def as_text(conversation: list[Exchange]) -> str:
    """A conversation as the chat template lays it out. (A test holds it to the template.)"""
    return "".join(f"<s>[INST] {one.question.strip()} [/INST] {one.answer.strip()} </s>" for one in conversation)


def batches(
    tokenizer: Tokenizer, seed: str, length: int, rows: int, stretches: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches without end; the same ones for the same arguments.

    Args:
        tokenizer: cuts the conversations.
        seed: of the conversations.
        length: tokens of one sequence.
        rows: sequences of one batch.
        stretches: the most that a conversation holds, see `conversations`.

    Yields:
        Input ids, target ids (each `[rows, length]`, int64), and weights of the targets (`[rows, length]`, float32).
    """
    source = conversations(seed, stretches)
    needed = rows * length + 1
    ids = torch.empty(0, dtype=torch.long)
    while True:
        while len(ids) < needed:
            texts = [as_text(one) for one in islice(source, CONVERSATIONS_AT_ONCE)]
            encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            ids = torch.cat([ids, *(torch.tensor(one.ids) for one in encoded)])
        chunk, ids = ids[:needed], ids[needed - 1 :]
        inputs, targets = chunk[:-1].view(rows, length), chunk[1:].view(rows, length)
        yield inputs, targets, weights(inputs)


def weights(inputs: Tensor) -> Tensor:
    """What the token after each input counts: 1 within answers, from their first token to the end mark, else less.

    A sequence that begins within an answer counts as a question up to its first mark.
    """
    marks = (inputs == ANSWER).int() - (inputs == END).int()
    answering = marks.cumsum(dim=1) > (marks.cumsum(dim=1).cummin(dim=1).values.clamp(max=0))
    return torch.where(answering, 1.0, QUESTION_WEIGHT)
