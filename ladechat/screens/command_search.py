"""The search of the command palette."""

from textual.command import Hit, Hits
from textual.system_commands import SystemCommandsProvider

BY_HELP = 0.5
"""Below the score of any title that matches: commands found by their help come last."""


class CommandSearch(SystemCommandsProvider):
    """Finds a command by its title, as Textual does, and also by what is said of it."""

    async def search(self, query: str) -> Hits:
        """The commands whose titles have the letters of `query` in their order, or whose help has it as it stands."""
        matcher = self.matcher(query)
        for title, text, callback, _ in self.app.get_system_commands(self.screen):
            score = matcher.match(title) or BY_HELP * (query.casefold() in text.casefold())
            if score:
                yield Hit(score, matcher.highlight(title), callback, help=text)
