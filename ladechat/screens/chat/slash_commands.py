"""Commands that are typed into the prompt: they are run, or a message shows the valid ones."""

from textual import on

from ladechat.commands import SlashCommand, find, nearest
from ladechat.screens.chat.own_settings import OwnSettings
from ladechat.session.change import SettingRefused, missing_here
from ladechat.session.conversations.saved import shortened
from ladechat.widgets.prompt.prompt import Prompt

AS_TEXT = "With a space before the slash it is sent to the model."


class SlashCommands(OwnSettings):
    """Runs input that starts with a slash."""

    @on(Prompt.Commanded)
    async def _run_command(self, event: Prompt.Commanded) -> None:
        """Run a command. If it is refused, at once or later, `_refuse` puts it back into the prompt."""
        self._command = event.text
        try:
            await self._run_typed()
        except SettingRefused as refused:
            self._refuse(str(refused))
        finally:
            self._command = ""

    async def _run_typed(self) -> None:
        name, _, argument = self._command.partition(" ")
        command, argument = find(name), argument.strip()
        if command is not None:
            await self._run(command, argument)
        elif self._can_be_set(name):
            self.action_set(f"{name} {argument}")
        elif (missing := missing_here(name, self._session.requested, self.view.presenter.decoders)) is not None:
            self._refuse(missing)
        else:
            near = nearest(name)
            meant = f"; did you mean /{near.name}?" if near else ". Type / for a list."
            self._refuse(f"There is no command /{shortened(name)}{meant} {AS_TEXT}")

    async def _run(self, command: SlashCommand, argument: str) -> None:
        if argument and not command.argument:
            self._refuse(f"/{command.name} takes nothing behind it. {AS_TEXT}")
        elif command.needs_argument and not argument:
            self._refuse(f"It takes something more: {command.usage}.", f"{command.name} ")
        elif not self.check_action(command.action, ()):
            self._refuse(f"/{command.name} has nothing to act on now.")
        elif command.argument:
            namespace, _, action = command.action.rpartition(".")
            await self.app.run_action((namespace, action, (f"{command.sets} {argument}".strip(),)), self)
        else:
            await self.app.run_action(command.action, self)

    def _can_be_set(self, name: str) -> bool:
        return any(name.casefold() in (one.name.casefold(), one.long_name) for one in self.settings())
