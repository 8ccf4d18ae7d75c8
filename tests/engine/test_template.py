"""Chat templates, programs that come with a checkpoint, write what transformers makes of them, within limits."""

import gc
import mmap
import sys
import threading
import weakref
from collections.abc import Callable

import pytest
from jinja2 import TemplateError

from ladechat.engine.conversation import MOST_CONVERSATION, MOST_MESSAGE, ChatFormat, MessageTooLong, NothingToAnswer
from ladechat.engine.interruptible import unless_stopped
from ladechat.model.checkpoint.template import rendered
from ladechat.protocol import Failed, Generate, Stop, TurnFinished, TurnStarted
from tests.engine import tokenizers
from tests.engine.inside import Inside
from tests.engine.messages import CHATML, user, with_template

TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a cat"}]
TEMPLATES = [
    CHATML,
    "{{ bos_token ~ messages[0]['role'] ~ 3 ~ none }}{% for m in messages %}{{ loop.index0 * 2 }}{% endfor %}",
    """{% macro line(m) %}{{ m.role | upper }}: {{ m.content | trim | indent(2) }}{% endmacro %}
    {% for m in messages %}{{ line(m) }}\n{% endfor %}""",
    """{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ '%d of %s' % (ns.n, 2) }}
    {{ '-' * 3 + '{:>5}'.format(ns.n) }}{{ 'ab'.center(9) }}{{ [1, 2] + [3] }}{% endfor %}{{ messages | tojson }}""",
    """{% for m in messages %}{% generation %}{{ m['content'] }}{% endgeneration %}
    {% if loop.last %}{% break %}{% endif %}{% endfor %}{% if add_generation_prompt %}go{% endif %}
    {{ tools is none }}{{ 7 // 2 }}{{ 2 ** 10 }}{{ 7 % 4 }}""",
    "{{ '**%s**' % messages[0].role }}{{ '* {}'.format(7) }}{{ '%s **' | format(7) }}",
    "{{ 'Date 20240726: %s' % 7 }}{{ '20240726 {}'.format(7) }}{{ 'a'.replace('a', 'b', 99999999) }}",
    "{{ 17 ** 1000 }}{{ 20240726 | string }}{{ 'abc' | truncate(99999999) }}",
]


@pytest.mark.parametrize("template", [None, *TEMPLATES])
def test_a_template_writes_what_transformers_has_it_write(template: str | None) -> None:
    tokenizer = tokenizers.demo()
    whole = tokenizer.apply_chat_template(TALK, chat_template=template, tokenize=False, add_generation_prompt=True)
    assert rendered(tokenizer, TALK, template, add_generation_prompt=True) == whole


def rendered_with(source: str, **functions: Callable[[], object]) -> str:
    """What a template writes that calls these."""
    return rendered(tokenizers.demo(), TALK, source, **functions)


@pytest.fixture
def bounded() -> None:
    """Memory that a template cannot have is refused; without that, no test shall ask for it."""

    def ask() -> str:
        try:
            mmap.mmap(-1, 1 << 30).close()  # no page of it is touched
        except OSError:
            return "refused"
        return "given"

    if sys.platform != "linux":
        pytest.skip("only Linux limits memory")
    assert rendered_with("{{ ask() }}", ask=ask) == "refused"


LONG = "{% set x = 'x' * 100000 %}"
DOUBLING = "{{% set ns = namespace(x='x' * 100000) %}}{{% for i in range(60) %}}{}{{% endfor %}}{{{{ ns.x }}}}"


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 8000000000 }}",
        "{{ [1] * 8000000000 }}",
        "{{ 'x' * 10 ** 30 }}",
        "{{ 'x' | center(8000000000) }}",
        "{{ 'x' | indent(width=8000000000, first=true) }}",
        "{{ messages | tojson(indent=8000000000) }}",
        "{{ '%*d' % (8000000000, 1) }}",
        "{{ '%80000000000000000000d' % 1 }}",
        "{{ '{:>{w}}'.format(1, w=8000000000) }}",
        LONG + "{{ x.replace('x', x) }}",
        LONG + "{{ x | replace('x', x) }}",
        LONG + "{{ x | join(x) }}",
        LONG + "{{ (x ~ '\n') * 20000 }}",
        DOUBLING.format("{% set ns.x = ns.x + ns.x %}"),
        DOUBLING.format("{% set ns.x = ns.x ~ ns.x %}"),
        DOUBLING.format("{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
        DOUBLING.format("{% set ns.x = [ns.x, ns.x] %}"),
        "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}" + DOUBLING.format("{% set ns.x = twice(ns.x) %}"),
    ],
)
def test_a_template_that_would_fill_the_memory_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        rendered(tokenizers.demo(), TALK, template)


@pytest.mark.usefixtures("bounded")
def test_a_template_that_would_fill_the_memory_is_refused_in_a_sentence() -> None:
    chat = ChatFormat(with_template("{{ 'x' * 8000000000 }}"))
    with pytest.raises(NothingToAnswer, match=r"the model's chat template refuses the conversation .*too much memory"):
        chat.fit([user("a")], 1024, 10)


def test_a_template_that_writes_without_end_is_refused_in_a_sentence() -> None:
    rows = "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{% endfor %}"
    with pytest.raises(NothingToAnswer, match=r"refuses the conversation .*more than 16,000,000 characters"):
        ChatFormat(with_template(rows)).fit([user("a")], 1024, 10)


def test_what_a_refused_template_had_made_is_freed_at_once() -> None:
    """Garbage is looked for seldom in an engine."""

    class Made:
        pass

    made: list[weakref.ref[Made]] = []

    def make() -> Made:
        thing = Made()
        made.append(weakref.ref(thing))
        return thing

    never: Callable[[], bool] = lambda: False  # noqa: E731 - an argument
    gc.disable()
    try:
        with pytest.raises(TemplateError, match="index-sized"):
            unless_stopped(lambda: rendered_with("{% set one = make() %}{{ 'x' * 10 ** 30 }}", make=make), never)
        assert [one() for one in made] == [None]
    finally:
        gc.enable()


def test_work_that_is_stopped_is_given_up_and_ends_by_itself() -> None:
    ended = threading.Event()

    def on_and_on() -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    assert unless_stopped(on_and_on, lambda: True) is None
    assert ended.wait(60)


def test_work_that_nobody_stops_gives_its_result_or_its_error() -> None:
    def fail() -> None:
        raise KeyError("no")

    never: Callable[[], bool] = lambda: False  # noqa: E731 - an argument
    assert unless_stopped(lambda: 7, never) == 7
    with pytest.raises(KeyError):
        unless_stopped(fail, never)


def test_what_is_longer_than_any_context_is_refused_before_it_is_turned_into_tokens() -> None:
    chat = ChatFormat(tokenizers.demo())
    with pytest.raises(MessageTooLong, match=f"no more than {MOST_MESSAGE:,} are read"):
        chat.fit([user("x" * (MOST_MESSAGE + 1))], 1024, 10)
    half = user("x" * MOST_MESSAGE)
    with pytest.raises(MessageTooLong, match=f"no more than {MOST_CONVERSATION:,} are read"):
        chat.fit([half] * 5, 1024, 10)


def test_a_stop_is_heard_while_a_long_message_is_turned_into_tokens(engine: Inside) -> None:
    engine.send(Generate(turn=700, messages=[user("What is the n-gram pool? " * 70_000)]))
    engine.send(Stop())
    finished = engine.until(TurnFinished)
    assert (finished.turn, finished.reason, finished.steps) == (700, "stopped", 0)
    assert engine.of_turn(TurnStarted, 700)[0].prompt_ids == []
    assert not engine.of_turn(Failed, 700)
    assert engine.ask(user("What is the n-gram pool?"), max_new_tokens=2)[1].reason == "max_new_tokens"
