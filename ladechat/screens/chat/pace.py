"""The pace of an answer."""

from ladechat.screens.chat.context import Available, ChatContext
from ladechat.screens.chat.looking_back import LookingBack


class PaceController:
    """Pauses an answer, takes single steps, sets the steps per second, and stops it."""

    def __init__(self, chat: ChatContext, looking_back: LookingBack) -> None:
        session = self._session = chat.session
        self._looking_back = looking_back
        self.available: Available = {
            "stop": lambda: session.can_stop,
            "pause": lambda: session.asking,
            "take_step": lambda: session.asking and session.pace.paused,
            "slower": lambda: session.asking,
            "faster": lambda: session.asking,
        }

    def action_stop(self) -> None:
        """Stop the answer, a download, or a search: for another model, or for layers to skip."""
        self._session.stop()

    def action_pause(self) -> None:
        self._session.set_pace(self._session.pace.pause(not self._session.pace.paused))

    def action_take_step(self) -> None:
        """Take one step of a paused answer, and show it."""
        self._looking_back.action_leave_steps()
        self._session.take_step()

    def action_slower(self) -> None:
        self._session.set_pace(self._session.pace.faster(-1))

    def action_faster(self) -> None:
        self._session.set_pace(self._session.pace.faster(1))

    def action_slow_motion(self) -> None:
        """Switch between four steps per second and full speed."""
        self._session.set_pace(self._session.pace.slow_motion())
