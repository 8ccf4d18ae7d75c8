"""The keys that act now."""

from textual.binding import ActiveBinding

from ladechat.keys import (
    EARLIER_KEYS,
    LEFT_OUT_OF_THE_FOOTER,
    LEFT_OUT_WHERE_NARROW,
    LEFT_OUT_WHILE_LOOKING,
    PACE_IDS,
    WALK_IDS,
)
from ladechat.own_keys import keys_of
from ladechat.screens.chat.context import ChatContext
from ladechat.screens.footer import change, leave_out, relabel, say_unit


class ActiveKeys:
    """Which keys act on the screen while the prompt is empty, and which the footer shows."""

    def __init__(self, chat: ChatContext) -> None:
        self._screen, self._session, self._prompt = chat.screen, chat.session, chat.prompt
        self._presenter = chat.view.presenter
        self._shown: tuple[object, ...] = ()

    @property
    def _narrow(self) -> bool:
        return not self._screen.has_class("-wide")

    def show(self) -> None:
        """Update the prompt and the footer if other keys are active."""
        session, keys = self._session, self._acting()
        shown = (keys, session.pace, session.can_stop, self._prompt.is_blank, self._narrow)
        if shown != self._shown:
            self._shown = shown
            self._prompt.passed_on = keys
            self._screen.refresh_bindings()

    def lend(self) -> None:
        """Lend the arrow keys to looking back until something is typed, even if the prompt has text."""
        walks = WALK_IDS if self._presenter.inspection.running else ()
        self._prompt.lent = keys_of(self._screen._bindings, walks)
        self.show()
        self._screen.refresh_bindings()

    def _acting(self) -> frozenset[str]:
        """Return the keys of the screen that are not typed while the prompt is empty."""
        acting = ["explain", *(PACE_IDS if self._session.asking else ())]
        if self._session.waiting:
            acting.append("take_back")
        if self._presenter.chosen is not None:
            acting.append("delete_question")
        if self._presenter.inspection.running:
            acting += WALK_IDS
        elif self._presenter.answers.latest is not None:
            acting.append("look_back")
        return keys_of(self._screen._bindings, acting)

    def in_footer(self, bindings: dict[str, ActiveBinding]) -> dict[str, ActiveBinding]:
        """Return the bindings with labels for now, and without those that give way to others in the footer.

        The pace keys are hidden while the prompt has text, since they are then typed; otherwise other keys make room
        for them. Looking back hides other keys too, and an answer hides the key for looking back.
        """
        narrow, pace = self._narrow, self._session.pace
        if pace.in_slow_motion:
            relabel(bindings, "slow", "Fast" if narrow else "Full speed")
        if pace.paused:
            relabel(bindings, "pause", "Go on")
        say_unit(bindings, self._presenter.unit)
        if narrow:
            relabel(bindings, "take_step", self._presenter.unit.capitalize())
            leave_out(bindings, LEFT_OUT_WHERE_NARROW)
        if not self._prompt.is_blank:
            leave_out(bindings, ("explain", *PACE_IDS))
        elif any(active.binding.id == "pause" for active in bindings.values()):
            leave_out(bindings, (*LEFT_OUT_OF_THE_FOOTER, "explain") if narrow else LEFT_OUT_OF_THE_FOOTER)
        if self._presenter.chosen is not None:
            change(bindings, [key.id for key in EARLIER_KEYS], show=True)
        if self._presenter.inspection.running or self._presenter.chosen is not None:
            leave_out(bindings, LEFT_OUT_WHILE_LOOKING)
        elif self._session.asking:
            leave_out(bindings, ("look_back",))
        return bindings
