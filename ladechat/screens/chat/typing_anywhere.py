"""Typed text goes to the prompt, wherever the focus is."""

from textual import events

from ladechat.screens.chat.session_screen import SessionScreen


class TypingAnywhere(SessionScreen):
    """Sends characters that no widget uses to the prompt, and moves the focus there."""

    def on_key(self, event: events.Key) -> None:
        """Type a key that the focused widget does not use, unless it is a key of the screen now.

        A key pressed before the prompt got the focus goes there too, so that Enter does not overtake a letter.
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
        """Insert text that was pasted elsewhere; the prompt stops the events of text pasted into it."""
        event.stop()
        self.set_focus(self._prompt)
        self._prompt.post_message(events.Paste(event.text))
