"""Chat templates, programs that come with a checkpoint, write what transformers makes of them, within limits."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from jinja2 import TemplateError

from ladechat.engine.chat_format import MOST_CONVERSATION, MOST_MESSAGE, ChatFormat, MessageTooLong, RefusedByTemplate
from ladechat.engine.interruptible import unless_stopped
from ladechat.model.checkpoint import template as template_module
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
    names: dict[str, Any] = tokenizer.special_tokens_map
    source = template or str(tokenizer.chat_template)
    assert rendered(source, TALK, add_generation_prompt=True, **names) == whole


only_linux_limits_memory = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
LONG = "{% set x = 'x' * 100000 %}"
DOUBLING = "{{% set ns = namespace(x='x' * 100000) %}}{{% for i in range(60) %}}{}{{% endfor %}}{{{{ ns.x }}}}"


@only_linux_limits_memory
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
        rendered(template, TALK)


@only_linux_limits_memory
def test_a_template_that_would_fill_the_memory_is_refused_in_a_sentence() -> None:
    chat = ChatFormat(with_template("{{ 'x' * 8000000000 }}"))
    with pytest.raises(RefusedByTemplate, match=r"cannot write this conversation: .*too much memory"):
        chat.fit([user("a")], 1024, 10)


def test_a_template_that_writes_without_end_is_refused_in_a_sentence() -> None:
    rows = "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'x' * 99999 }}{% endfor %}{% endfor %}"
    with pytest.raises(RefusedByTemplate, match=r"cannot write this conversation: .*more than 16,000,000 characters"):
        ChatFormat(with_template(rows)).fit([user("a")], 1024, 10)


EXPONENTIAL = (
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
    "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}"
)
ENDLESS = (
    "{{ 9 ** (9 ** 9) }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    EXPONENTIAL,
)


@pytest.mark.parametrize("template", ENDLESS)
def test_a_stop_ends_a_template_that_computes_for_ever_and_the_next_question_is_answered(template: str) -> None:
    """Also in the middle of one operation, which no thread of Python can be stopped in."""
    chat = ChatFormat(with_template(template))
    assert unless_stopped(lambda: chat.fit([user("a")], 1024, 10), lambda: True) is None
    assert rendered("{{ messages[0].role }}", TALK) == "system"


def test_a_template_that_computes_for_ever_is_refused_without_a_stop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system ends the process that renders it."""
    monkeypatch.setattr(template_module, "MOST_SECONDS", 1)
    with pytest.raises(TemplateError, match="more than 1 s of processor time"):
        rendered(ENDLESS[0], TALK)
    assert rendered("{{ messages[0].role }}", TALK) == "system"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{{ messages[0].content.parts[0].text }}", "has no attribute"),
        ("{% for m in %}", "Expected an expression"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ raise_exception('Only one question') }}", "Only one question"),
        ("{{ raise_exception() }}", "it refuses it"),
        ("{{ raise_exception(3) }}", "3"),
        ("{{ raise_exception('x' * 100000) }}", r"x{240}\.$"),
        ("{{ messages + 1 }}", "can only concatenate"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "recursion"),
        ("{% import 'x' as x %}", "no loader"),
        ("{% include 'x' %}", "no loader"),
        ("{{ messages[0].content | no_filter }}", "No filter named"),
        ("{{ messages[0].content + '\\ud800' }}", "half a character"),
    ],
)
def test_a_template_that_fails_is_refused_in_a_sentence_that_says_why_and_what_to_do(source: str, why: str) -> None:
    chat = ChatFormat(with_template(source))
    with pytest.raises(
        RefusedByTemplate, match=f"The model's chat template cannot write this conversation: .*{why}"
    ) as caught:
        chat.fit([user("a")], 1024, 10)
    assert "another copy of the model" in caught.value.hint


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
    engine.send(Generate(turn=700, messages=[user("What is the n-gram pool? " * 30_000)]))
    engine.send(Stop())
    finished = engine.until(TurnFinished)
    assert (finished.turn, finished.reason, finished.steps) == (700, "stopped", 0)
    assert engine.of_turn(TurnStarted, 700)[0].prompt_ids == []
    assert not engine.of_turn(Failed, 700)
    assert engine.ask(user("What is the n-gram pool?"), max_new_tokens=2)[1].reason == "max_new_tokens"
