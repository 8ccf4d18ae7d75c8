"""Typing, wherever the focus is: it goes to the prompt."""

from textual import events

from ladechat.screens.session_screen import SessionScreen


class TypingAnywhere(SessionScreen):
    """Characters that nothing else takes go to the prompt, and the focus with them."""

    def on_key(self, event: events.Key) -> None:
        """Type what the widget with the focus has left, unless it is a key of the screen now.

        A key that was on its way when the prompt got the focus goes there too: Enter overtakes no letter.
        """
        prompt = self._prompt
        typed = event.is_printable and not prompt.passes_on(event.key)
        if event not in prompt.seen and (typed or self.focused is prompt):
            event.stop()
            self.set_focus(prompt)
            passed_on = events.Key(event.key, event.character)
            passed_on.time = event.time
            prompt.post_message(passed_on)

    def on_paste(self, event: events.Paste) -> None:
        """Insert what was pasted elsewhere: the prompt lets nothing go that it has inserted."""
        event.stop()
        self.set_focus(self._prompt)
        self._prompt.post_message(events.Paste(event.text))
