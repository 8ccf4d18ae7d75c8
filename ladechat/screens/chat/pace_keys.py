"""The pace of an answer: its keys, the status line and the footer."""

from collections.abc import Iterable
from typing import Any

from textual.binding import ActiveBinding

from ladechat.keys import EXPLAIN_KEY, LEFT_OUT_OF_THE_FOOTER, LEFT_OUT_WHERE_NARROW, PACE_KEYS
from ladechat.screens.chat.session_screen import SessionScreen
from ladechat.screens.footer import leave_out, relabel
from ladechat.widgets.formatting import describe_waiting


class PaceKeys(SessionScreen):
    """Pauses an answer, takes single steps, and sets the steps per second."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_footer: tuple[object, ...] = ()

    def action_pause(self) -> None:
        """Pause the answer between two steps, or continue it."""
        self._session.set_pace(self._session.pace.pause(not self._session.pace.paused))

    def action_take_step(self) -> None:
        """Take one step of a paused answer."""
        self._session.take_step()

    def action_slower(self) -> None:
        """Take fewer steps per second."""
        self._session.set_pace(self._session.pace.faster(-1))

    def action_faster(self) -> None:
        """Take more steps per second."""
        self._session.set_pace(self._session.pace.faster(1))

    def action_slow_motion(self) -> None:
        """Switch between four steps per second and full speed."""
        self._session.set_pace(self._session.pace.slow_motion())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: pace keys during an answer; stop if there is anything to stop."""
        if action == "stop":
            return self._session.can_stop
        if action in (binding.action for binding in PACE_KEYS):
            return self._session.asking and (action != "take_step" or self._session.pace.paused)
        return True

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """Hides the pace keys while the prompt has text, since they are then typed; otherwise hides other keys to make
        room for them.
        """
        bindings = super().active_bindings
        narrow = not self.has_class("-wide")
        if self._session.pace.in_slow_motion:
            relabel(bindings, "slow", "Fast" if narrow else "Full speed")
        if self._session.pace.paused:
            relabel(bindings, "pause", "Go on")
        if narrow:
            relabel(bindings, "take_step", "Pass")
            leave_out(bindings, LEFT_OUT_WHERE_NARROW)
        if not self._prompt.is_blank:
            leave_out(bindings, ["explain", *(binding.id for binding in PACE_KEYS if binding.id)])
        elif any(active.binding.id == "pause" for active in bindings.values()):
            leave_out(bindings, (*LEFT_OUT_OF_THE_FOOTER, "explain") if narrow else LEFT_OUT_OF_THE_FOOTER)
        return bindings

    def _show_pace(self) -> None:
        """Show the requested pace in the status line, and the keys that are active now in the footer."""
        session, pace = self._session, self._session.pace
        self.view.show_pace(pace.rate, pace.paused, describe_waiting(len(session.waiting), session.continuing_later))
        keys = frozenset(self._keys_that_act())
        in_footer = (keys, pace, session.can_stop, self._prompt.is_blank, self.has_class("-wide"))
        if in_footer != self._in_footer:
            self._in_footer = in_footer
            self._prompt.passed_on = keys
            self.refresh_bindings()

    def _keys_that_act(self) -> Iterable[str]:
        """Return the keys of the screen that are not typed while the prompt is empty."""
        return [EXPLAIN_KEY, *(binding.key for binding in PACE_KEYS if self._session.asking)]
