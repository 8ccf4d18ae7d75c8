"""The search of the command palette."""

from textual.command import Hit, Hits
from textual.system_commands import SystemCommandsProvider

BY_HELP = 0.5
"""The score of commands found by their help: below that of any title that matches, so that they come last."""


class CommandSearch(SystemCommandsProvider):
    """Finds a command by its title, as Textual does, and by its help."""

    async def search(self, query: str) -> Hits:
        """Yield the commands whose titles have the letters of `query` in order, or whose help contains it."""
        matcher = self.matcher(query)
        for title, text, callback, _ in self.app.get_system_commands(self.screen):
            score = matcher.match(title) or BY_HELP * (query.casefold() in text.casefold())
            if score:
                yield Hit(score, matcher.highlight(title), callback, help=text)
