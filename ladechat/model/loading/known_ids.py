"""Token ids that a tokenizer has and a model does not: tokens were added, and its embeddings were not resized."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

HINT = "Leave it out, or use a copy of the model whose embeddings were resized to its tokenizer."


class UnknownToken(ValueError):
    """A prompt with a token that the model has no embedding for: which in the message, what to do in `hint`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.hint = HINT


def check_ids(token_ids: Sequence[int], embeddings: int, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a prompt that no pass could read: on a GPU, looking up such an id would end the engine.

    Args:
        token_ids: of the prompt.
        embeddings: how many there are, for the ids from 0 on.
        tokenizer: names the token.

    Raises:
        UnknownToken: an id is not among them.
    """
    if token_ids and (min(token_ids) < 0 or max(token_ids) >= embeddings):
        unknown = next(token_id for token_id in token_ids if not 0 <= token_id < embeddings)
        raise UnknownToken(
            f"The prompt has {_named(unknown, tokenizer)}, and the model has embeddings for the ids 0 to "
            f"{embeddings - 1:,} only."
        )


def beyond_embeddings(embeddings: int, tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Say in a sentence that a tokenizer has tokens which the model lacks; None where it has none."""
    beyond = sorted(token_id for token_id in tokenizer.get_vocab().values() if token_id >= embeddings)
    if not beyond:
        return None
    return (
        f"{len(beyond):,} tokens of the tokenizer are beyond the model's embeddings, as {_named(beyond[0], tokenizer)}."
    )


def _named(token_id: int, tokenizer: PreTrainedTokenizerBase) -> str:
    token = tokenizer.convert_ids_to_tokens(token_id) if token_id >= 0 else None
    return f"the token id {token_id}" if token is None else f"the token {str(token)[:80]!r} (id {token_id})"
