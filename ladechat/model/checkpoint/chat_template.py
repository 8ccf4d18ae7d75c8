"""Formats the messages of a conversation as the tokens of a prompt, by the checkpoint's chat template."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jinja2 import TemplateError

from ladechat.model.checkpoint.marks import GUARD, Marks
from ladechat.model.checkpoint.template import TakesTooMuch, rendered

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LLAMA_2_CHAT = re.compile(r"llama-?2.*chat", re.IGNORECASE)
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}"
    "{% set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}{% set turns = messages[1:] %}"
    "{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}"
    "{% for message in turns %}"
    "{% if message['role'] == 'user' %}"
    "{{ bos_token | default('') + '[INST] ' + (system if loop.first else '') }}"
    "{{ message['content'].strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'].strip() + ' ' + eos_token | default('') }}{% endif %}"
    "{% endfor %}"
)
"""The chat format of Llama 2 (Touvron et al. 2023), for copies of Llama-2-Chat without a template."""

PLAIN = (
    "{% for message in messages %}"
    "{{ {'system': '', 'user': 'User: ', 'assistant': 'Assistant: '}[message['role']] }}"
    "{{ message['content'].strip() + ('\n\n' if message['role'] == 'system' else '\n') }}"
    "{% endfor %}{{ 'Assistant:' }}"
)
"""The format for models that were not trained on a chat format: text whose continuation is an answer."""
PLAIN_STOP = "\nUser:"
"""The end of an answer in plain text: the model continues with the next question."""

TRIED = ("question", "exercise")
"""The words with which a template is tried: it includes a message's text if another word of the same length changes
the prompt."""
SECONDS_OF_A_TRIAL = 1
"""The processor time that a trial may take: a thousand times the usual time."""

END_OF_THOUGHTS = re.compile(r"[<\[◁]/[\w:]*(?:think|thought|reason)\w*[>\]▷]", re.IGNORECASE)
"""A mark after thoughts, by its form; the one before them has no slash."""
CHANNELS = {
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel>thought": "<channel|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
"""Marks before and after thoughts of another form: of gpt-oss, Gemma 4 and Command A."""

OTHER_PURPOSES = frozenset({"tool_use", "rag"})
"""Names of templates for other purposes than a conversation."""


class Said(Protocol):
    """One message: its role, its text, and for an answer the tokens as which it was generated, if known."""

    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def token_ids(self) -> list[int] | None: ...


class TemplateMessage(NamedTuple):
    """A message as passed to a template, with its marks guarded."""

    role: str
    text: str


class Encoded(NamedTuple):
    """A prompt, and whether system messages were put into questions because the template has no system role."""

    token_ids: list[int]
    system_folded: bool


@dataclass(frozen=True)
class Format:
    """A chat template, and its origin in words.

    Attributes:
        stop: a text that ends an answer; None where only tokens end it.
    """

    source: str
    origin: str
    stop: str | None = None


def chosen_format(tokenizer: "PreTrainedTokenizerBase", model: str) -> Format:
    """Return the checkpoint's template (of several, the one for conversations), or a built-in one where it has none."""
    own: Any = tokenizer.chat_template
    if isinstance(own, dict) and own:
        usual = [name for name in own if name not in OTHER_PURPOSES]
        name = "default" if "default" in own else next(iter(usual or own))
        return Format(str(own[name]), "checkpoint" if name == "default" else f"checkpoint ({name})")
    if own:
        return Format(str(own), "checkpoint")
    if LLAMA_2_CHAT.search(model):
        return Format(LLAMA_2, "llama-2 (built in)")
    return Format(PLAIN, "plain text (built in)", PLAIN_STOP)


class ChatTemplate:
    """Writes conversations in the format of one checkpoint.

    The prompt is the template's rendering of the messages, tokenized as transformers does. Marks in a user's text stay
    text: see `marks`. `model` is the model's name, by which a Llama-2-Chat without a template is recognised.

    Attributes:
        variables: values for the template, as `tokenizer.apply_chat_template` takes them.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", model: str = "") -> None:
        self._tokenizer = tokenizer
        self.marks = Marks(tokenizer)
        self.format = chosen_format(tokenizer, model)
        self.variables: Mapping[str, Any] = {}
        self._parts: dict[str, bool] = {}
        self._useless: TemplateError | None = None

    def encode(self, messages: Sequence[Said]) -> Encoded:
        """Return the tokens of a conversation, up to the beginning of the next answer.

        Raises:
            TemplateError: the template refuses the conversation.
        """
        sent = [
            TemplateMessage(said.role, said.content if said.role == "assistant" else self.marks.guarded(said.content))
            for said in messages
        ]
        text, folded = self._written(sent)
        answers = [(n, said) for n, said in enumerate(messages) if said.role == "assistant"]
        shown = self.marks.shown_among  # in an answer that was generated with the marks that its text has, all are
        foreign = [n for n, said in answers if self.marks.ids_in(said.content) != shown(said.token_ids or [])]
        for mark in sorted({mark for n in foreign for mark in self.marks.ids_in(sent[n].text)}):
            # Marks in an answer stay text too, unless the template searches for them, as for the end of thinking.
            guarded = list(sent)
            for n in foreign:
                guarded[n] = TemplateMessage("assistant", self.marks.guarded(sent[n].text, {mark}))
            other, _ = self._written(guarded)
            if other.replace(GUARD, "") == text.replace(GUARD, ""):
                sent, text = guarded, other
        if any(self.marks.may_be_part(turn.text) for turn in sent):
            # Where a template writes a message directly after a `<`, or after another message, both may form a mark.
            apart = self._written([TemplateMessage(role, self.marks.guarded_ends(said)) for role, said in sent])[0]
            if apart.replace(GUARD, "") == text.replace(GUARD, "") and self._marks_in(apart) != self._marks_in(text):
                text = apart
        beginning = self.marks.beginning if self.format.stop else []
        return Encoded([*beginning, *self.marks.tokenize(text)], folded)

    def _marks_in(self, text: str) -> list[int]:
        return [mark for part in text.split(GUARD) for mark in self.marks.ids_in(part)]

    def text(self, messages: Sequence[Said]) -> str:
        """Return a conversation as text, up to the beginning of the next answer; refused as by `encode`."""
        return self._written([TemplateMessage(message.role, message.content) for message in messages])[0]

    def finished(self, turns: Sequence[TemplateMessage]) -> str:
        """Return a conversation as text, up to the end of its last message; refused as by `encode`."""
        return self._render(turns, add_generation_prompt=False)

    def distinguishes(self, *variables: Mapping[str, Any]) -> bool:
        """Return whether the template writes different prompts with these variables; not if it writes none."""
        if not any(name in self.format.source for each in variables for name in each):
            return False  # without starting the process that renders, which would delay each start of the engine
        turns = [TemplateMessage("user", TRIED[0])]
        try:
            return len({self._render(turns, seconds=SECONDS_OF_A_TRIAL, **each) for each in variables}) > 1
        except TemplateError:
            return False

    def _written(self, turns: Sequence[TemplateMessage]) -> tuple[str, bool]:
        """Return the conversation as text, and whether system messages had to be folded into questions."""
        if all(turn.role != "system" for turn in turns):
            return self._render(turns), False
        try:
            text = self._render(turns)
            others = [turn._replace(text=f"{turn.text}?") if turn.role == "system" else turn for turn in turns]
            if text != self._render(others):  # it depends on the system messages
                return text, False
        except TemplateError:  # many templates know no system role
            pass
        return self._render(_system_folded(turns)), True

    def _render(self, turns: Sequence[TemplateMessage], **options: Any) -> str:
        roles = dict.fromkeys(turn.role for turn in turns)
        return self._render_as({role for role in roles if self._takes_parts(role)}, turns, **options)

    def _render_as(self, parts: Collection[str], turns: Sequence[TemplateMessage], **options: Any) -> str:
        """Return the conversation as text; the content of the roles in `parts` is passed as a list of parts."""
        messages = [
            {"role": role, "content": [{"type": "text", "text": text}] if role in parts else text}
            for role, text in turns
        ]
        names = {name: str(token) for name, token in self._tokenizer.special_tokens_map.items()}
        values = {**names, "seconds": None, "add_generation_prompt": True, **self.variables, **options}
        return rendered(self.format.source, messages, **values)

    @cached_property
    def thought_marks(self) -> tuple[str, str] | None:
        """The marks around thoughts, of the template or among the checkpoint's tokens; None if there are none."""
        if channel := next((marks for marks in CHANNELS.items() if marks[0] in self.format.source), None):
            return channel
        tokens = (str(token.content) for token in self._tokenizer.added_tokens_decoder.values())
        found = END_OF_THOUGHTS.search("\n".join([self.format.source, *tokens]))
        return (found[0].replace("/", "", 1), found[0]) if found else None

    def _takes_parts(self, role: str) -> bool:
        """Return whether the template takes a role's content as a list of parts, because it leaves out a bare text.

        Raises:
            TemplateError: it leaves out questions in either form, or takes too long.
        """
        if self._useless is not None:
            raise self._useless
        if role not in self._parts:
            bare = self._writes(role, as_parts=False)
            as_parts = not bare and self._writes(role, as_parts=True)
            if role == "user" and bare is False and not as_parts:
                self._useless = TemplateError("it leaves out what the question says")
                raise self._useless
            self._parts[role] = bool(as_parts)
        return self._parts[role]

    def _writes(self, role: str, as_parts: bool) -> bool | None:
        """Return whether a role's content gets into the prompt; None where the template refuses the trial conversation.

        Raises:
            TakesTooMuch: the trial takes too long. No further conversation is tried then.
        """
        others = {"user"} if role != "user" and self._takes_parts("user") else set()
        parts = others | {role} if as_parts else others
        question, said = TemplateMessage("user", TRIED[0]), [TemplateMessage(role, word) for word in TRIED]
        talks = {"user": [[one] for one in said], "system": [[one, question] for one in said]}
        try:
            one, other = (
                self._render_as(parts, talk, seconds=SECONDS_OF_A_TRIAL)
                for talk in talks.get(role, [[question, one, question] for one in said])
            )
        except TakesTooMuch as error:
            self._useless = error
            raise
        except TemplateError:
            return None
        return one != other


def _system_folded(turns: Iterable[TemplateMessage]) -> list[TemplateMessage]:
    """Return the turns with each system message put before the question that follows it."""
    folded: list[TemplateMessage] = []
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "system":
            waiting.append(turn.text)
        elif turn.role == "user":
            folded.append(TemplateMessage("user", "\n\n".join([*waiting, turn.text])))
            waiting.clear()
        else:
            folded.append(turn)
    return folded
