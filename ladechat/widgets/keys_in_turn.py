"""Keys act in the order in which they were typed, at any speed, on the screen that an earlier key has opened.

Textual looks up a key's action once the key has bubbled up to the app, but chooses the receiving widget when the key is
read. In a burst, as of a macro or over a slow line, all keys are queued at one widget before the first has opened a
screen. So that widget runs the bindings in order, and forwards the keys that belong to another screen.
"""

from textual import events
from textual.widget import Widget


def sent_on(widget: Widget, event: events.Key | events.Paste) -> bool:
    """Forward a key or a paste if an earlier key has opened another screen; return whether it was forwarded."""
    if widget.screen is widget.app.screen:
        return False
    send_on(event, widget.app.focused or widget.app.screen)
    return True


def send_on(event: events.Key | events.Paste, target: Widget) -> None:
    """Post a key or a paste to another widget instead."""
    event.prevent_default()
    event.stop()
    if isinstance(event, events.Paste):
        target.post_message(events.Paste(event.text))
    else:
        copy = events.Key(event.key, event.character)
        copy.time = event.time
        target.post_message(copy)
