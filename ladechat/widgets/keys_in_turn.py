"""Keys act in the order in which they were typed, however fast they come, and where the one before has led.

Textual looks up what a key does once it has come up to the app, and says where it goes when it is read. In a burst, as
of a macro or over a slow line, all of its keys are on their way to one widget before the first has opened a screen. So
that widget runs what is bound in its turn, and sends on what is for another.
"""

from textual import events
from textual.widget import Widget


def sent_on(widget: Widget, event: events.Key | events.Paste) -> bool:
    """Send on a key or a paste for a screen that a key before it has opened; return whether that is so."""
    if widget.screen is widget.app.screen:
        return False
    send_on(event, widget.app.focused or widget.app.screen)
    return True


def send_on(event: events.Key | events.Paste, target: Widget) -> None:
    """Have another widget take a key or a paste."""
    event.prevent_default()
    event.stop()
    if isinstance(event, events.Paste):
        target.post_message(events.Paste(event.text))
    else:
        copy = events.Key(event.key, event.character)
        copy.time = event.time
        target.post_message(copy)
