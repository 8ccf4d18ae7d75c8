"""The ways from the chat to a race and to the lessons; the chat stays as it is."""

from textual.app import SystemCommand

from ladechat.attachments import CannotAttach, with_files
from ladechat.lessons.progress import ProgressFile
from ladechat.screens.chat.context import STOP_FIRST, ChatContext
from ladechat.screens.chat.questions import Questions, too_long
from ladechat.screens.learn.lesson_session import lesson_session
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.race import RaceScreen
from ladechat.session.conversations.saved import shortened
from ladechat.session.engine import State
from ladechat.session.measuring import ONE_WAY, Measuring
from ladechat.widgets.formatting import name_of

RACE_OPTIONS = (
    "/race takes a question and no options. For those, type in the shell: "
    'ladechat race --decoders lookahead,medusa "What is a token?"'
)


class OtherScreens:
    """Opens races and the lessons over the chat."""

    def __init__(self, chat: ChatContext, questions: Questions) -> None:
        self._chat, self._session, self._questions = chat, chat.session, questions

    def action_race(self, question: str = "") -> None:
        """Race decoders on a question: the given one, the typed one, or else the last one."""
        text = question or self._chat.prompt.question
        why = RACE_OPTIONS if question.startswith("--") else self._why_no_race()
        try:
            text = with_files(text)
        except CannotAttach as refused:
            why = why or str(refused)
        why = why or too_long(text)
        measuring = None if why else self._session.race(text)
        if measuring is None:
            self._chat.refuse(why or "Type a question first: the race is about its answer.")
        else:
            self._questions.end_editing()
            self._chat.screen.app.push_screen(RaceScreen(measuring), lambda _: self._say_how_it_ended(measuring))

    def _say_how_it_ended(self, race: Measuring) -> None:
        """Leave a line about a race in the conversation."""
        if any(lane.steps for lane in race.lanes):
            lines = race.conclusions()[:2]
            self._chat.view.presenter.note(f"Race on ‘{shortened(race.question)}’: {' · '.join(lines)}")

    def _why_no_race(self) -> str:
        """Return why no race can start now, in a sentence; "" if one can."""
        session = self._session
        if session.state is State.ENDED:
            return self._chat.no_engine
        if self._chat.view.presenter.now.server is not None:
            return ONE_WAY
        if session.asking or session.waiting:
            return STOP_FIRST
        if session.racing:
            return "The race before is not at its end yet: its last pass is under way."
        if session.looking_for:
            return f"{name_of(session.looking_for)} is being looked for: race when it answers, or stop that (Esc)."
        return ""

    def learn_command(self) -> SystemCommand:
        text = "Seven scenes, ten minutes, with the bundled model; as ladechat learn. The chat stays as it is."
        return SystemCommand("Learn how it works", text, self.action_learn)

    def action_learn(self) -> None:
        """Continue the lessons."""
        if self._session.asking:
            self._chat.refuse(STOP_FIRST)
            return
        file = ProgressFile()
        progress, notice = file.read()
        self._chat.screen.app.push_screen(LearnScreen(lesson_session(), progress, file, notice))
