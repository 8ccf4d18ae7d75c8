"""The queue of questions sent during an answer: they are shown, and the last one can be taken back."""

from collections.abc import Iterable

from ladechat.screens.chat.pace_keys import PaceKeys


class QuestionsInLine(PaceKeys):
    """Shows the queue, and returns its last question to the prompt for editing."""

    def action_take_back(self) -> None:
        """Move the last question of the queue into the prompt."""
        if not self._prompt.is_blank:
            self.notify("Send or clear first what stands in the prompt.", severity="warning")
        elif (waiting := self._session.take_back_waiting()) is not None:
            self._offer(waiting.text, replacing=waiting.replacing)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: a question can be taken back if the queue is not empty."""
        if action == "take_back":
            return bool(self._session.waiting)
        return super().check_action(action, parameters)

    def _keys_that_act(self) -> Iterable[str]:
        yield from super()._keys_that_act()
        if self._session.waiting:
            yield "up"

    def _show_pace(self) -> None:
        super()._show_pace()
        self._waiting.questions = self._session.waiting
