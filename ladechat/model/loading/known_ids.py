"""Token ids of a tokenizer beyond the model's embeddings: tokens were added, but the embeddings not resized."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

HINT = "Leave it out, or use a copy of the model whose embeddings were resized to its tokenizer."


class UnknownToken(ValueError):
    """A prompt with a token without embedding: the message names it, `hint` says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.hint = HINT


def check_ids(token_ids: Sequence[int], embeddings: int, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a prompt that no pass could read: on a GPU, looking up such an id would end the engine.

    Args:
        token_ids: the prompt.
        embeddings: the number of embeddings, for the ids from 0 on.
        tokenizer: names the token.

    Raises:
        UnknownToken: an id has no embedding.
    """
    if token_ids and (min(token_ids) < 0 or max(token_ids) >= embeddings):
        unknown = next(token_id for token_id in token_ids if not 0 <= token_id < embeddings)
        raise UnknownToken(
            f"The prompt has {_named(unknown, tokenizer)}, and the model has embeddings for the ids 0 to "
            f"{embeddings - 1:,} only."
        )


def beyond_embeddings(embeddings: int, tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Return a sentence about the tokenizer's tokens without embedding; None where there are none."""
    beyond = sorted(token_id for token_id in tokenizer.get_vocab().values() if token_id >= embeddings)
    if not beyond:
        return None
    return (
        f"{len(beyond):,} tokens of the tokenizer are beyond the model's embeddings, as {_named(beyond[0], tokenizer)}."
    )


def _named(token_id: int, tokenizer: PreTrainedTokenizerBase) -> str:
    token = tokenizer.convert_ids_to_tokens(token_id) if token_id >= 0 else None
    return f"the token id {token_id}" if token is None else f"the token {str(token)[:80]!r} (id {token_id})"
