"""Independent questions, to decoders without learnt n-grams: each answer is reproducible, whatever was asked before."""

from msgspec.structs import replace

from ladechat.protocol import Generate
from ladechat.session.conversation import Conversation


class SingleQuestions(Conversation):
    """A conversation that forgets each question with its answer.

    Args:
        max_new_tokens: the longest answer, in tokens.
        model: the name of the model that answers.
    """

    def __init__(self, max_new_tokens: int, model: str) -> None:
        super().__init__(max_new_tokens=max_new_tokens, model=model)

    def ask(self, text: str, *, replacing: bool = False) -> Generate:
        """Return the command that asks for an answer to `text` as if nothing had been asked before."""
        self.restart()
        return replace(super().ask(text, replacing=replacing), fresh=True)
