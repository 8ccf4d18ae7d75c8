"""Commands that are typed into the prompt: they are run, or a message shows the valid ones."""

from ladechat.commands import SlashCommand, find, nearest
from ladechat.preferences import SettingsRefused
from ladechat.screens.chat.context import ChatContext
from ladechat.screens.chat.settings import ChatSettings
from ladechat.server_address import AddressRefused
from ladechat.session.change import SettingRefused, ValueRefused, missing_here
from ladechat.session.conversations.saved import shortened

AS_TEXT = "With a space before the slash it is sent to the model."


class SlashCommands:
    """Runs input that starts with a slash."""

    def __init__(self, chat: ChatContext, settings: ChatSettings) -> None:
        self._chat, self._settings = chat, settings

    async def run(self, text: str) -> None:
        """Run a command. If it is refused, at once or later, `refuse` puts it back into the prompt."""
        self._chat.command = text
        try:
            await self._run_typed(text)
        except ValueRefused as refused:
            command = " ".join(text.strip().removesuffix(refused.text).split())
            self._chat.refuse(str(ValueRefused(f"/{command}", refused.wants, refused.text)))
        except (SettingRefused, SettingsRefused, AddressRefused) as refused:
            self._chat.refuse(str(refused))
        finally:
            self._chat.command = ""

    async def _run_typed(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        command, argument, decoders = find(name), argument.strip(), self._chat.view.presenter.now.decoders
        if command is not None:
            await self._run(command, argument)
        elif self._settings.has(name) or missing_here(name, self._chat.session.requested, decoders):
            self._settings.set(name, argument)
        else:
            near = nearest(name)
            meant = f"; did you mean /{near.name}?" if near else ". Type / for a list."
            self._chat.refuse(f"There is no command /{shortened(name)}{meant} {AS_TEXT}")

    async def _run(self, command: SlashCommand, argument: str) -> None:
        screen = self._chat.screen
        if argument and not command.argument:
            self._chat.refuse(f"/{command.name} takes no argument. {AS_TEXT}")
        elif command.needs_argument and not argument:
            self._chat.refuse(f"It takes something more: {command.usage}.", f"{command.name} ")
        elif not screen.check_action(command.action, ()):
            self._chat.refuse(f"/{command.name} has nothing to act on now.")
        elif command.argument:
            namespace, _, action = command.action.rpartition(".")
            await screen.app.run_action((namespace, action, (f"{command.sets} {argument}".strip(),)), screen)
        else:
            await screen.app.run_action(command.action, screen)
