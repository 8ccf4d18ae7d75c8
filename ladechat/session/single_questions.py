"""Questions that have nothing to do with each other, to decoders that have learnt nothing: each answer is the same
again, whatever was asked before.
"""

from msgspec.structs import replace

from ladechat.protocol import Generate
from ladechat.session.conversation import Conversation


class SingleQuestions(Conversation):
    """A conversation that forgets each question with its answer.

    Args:
        max_new_tokens: the longest answer.
        model: the name of the model that answers.
    """

    def __init__(self, max_new_tokens: int, model: str) -> None:
        super().__init__(max_new_tokens=max_new_tokens, model=model)

    def ask(self, text: str, *, replacing: bool = False) -> Generate:
        """The command that has `text` answered as if nothing had been before it."""
        self.restart()
        return replace(super().ask(text, replacing=replacing), fresh=True)
