"""Small Python functions on request, from the families in `code_families.toml`.

Most requests prescribe a name, drawn from tens of thousands, so that the name has to be copied. Examples are computed
by running the function.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tools.demo_model import guide
from tools.demo_model.dialogue import Exchange, as_typed, forms, read
from tools.demo_model.words import NOUNS, function_name, several

FORMS = forms("code")
PARAMETERS = {"pair": "a, b"}
"""What a family takes, where that is not the parameters themselves."""

OWN_PARAMETERS = ("numbers", "words", "text", "number", "table")
"""Parameters that a request may name otherwise."""


@dataclass(frozen=True)
class Family:
    """Functions that differ in their name, and in a number or letter `k` if there is one."""

    takes: str
    does: Sequence[str]
    doc: str
    body: str
    how: str
    k: str = ""


@dataclass(frozen=True)
class Function:
    """One function of a family."""

    family: Family
    name: str
    k: int | str
    called: str = ""
    """Another name for its one parameter, if the request prescribes one."""

    def fill(self, text: str) -> str:
        return text.replace("{k}", str(self.k))

    @property
    def parameter(self) -> str:
        """Its parameters, as they stand in the first line."""
        return self.called or PARAMETERS.get(self.family.takes, self.family.takes)

    def source(self, doc: bool = True) -> str:
        """The code."""
        told = f'\n    """{self.fill(self.family.doc)}"""' if doc else ""
        body = self.fill(self.family.body)
        if self.called:
            body = re.sub(rf"\b{self.family.takes}\b", self.called, body)
        return f"def {self.name}({self.parameter}):{told}\n{body}"

    def how(self) -> str:
        """How the code goes, line by line where it keeps a value up to date."""
        told = self.fill(self.family.how)
        if begun := _KEPT.search(self.family.body):
            at_first = _AT_FIRST[begun[2]]
            return f"At first {begun[1]} is {at_first}. {told} In the end {begun[1]} is returned."
        return told

    def example(self, again: bool = False) -> str:
        """A sentence with a call and what it returns; another call than the first, if an example is asked for."""
        by_k = ARGUMENTS.get(self.family.takes, ARGUMENTS["number"])
        arguments = eval(by_k.get(self.family.k, by_k["any"]), {"k": self.k})[again]
        scope: dict[str, Callable[..., Any]] = {}
        exec(self.source(), scope)
        call = f"{self.name}({', '.join(map(shown, arguments))})"
        return f"For example, {call} returns {shown(scope[self.name](*arguments))}."


FAMILIES = {name: Family(**fields) for name, fields in read("code_families").items()}
ARGUMENTS: dict[str, dict[str, str]] = read("code_arguments")
"""Python by what a family takes, and by its `k` if that matters: the arguments of an example and of another one."""
DRAWN: dict[str, Callable[[Random], int | str]] = {
    "number": lambda rng: rng.choice((rng.randint(2, 20), rng.randint(2, 100))),
    "factor": lambda rng: rng.randint(2, 12),
    "few": lambda rng: rng.randint(2, 5),
    "length": lambda rng: rng.randint(2, 8),
    "word": lambda rng: rng.choice(NOUNS),
    "letter": lambda rng: rng.choice("abcdefghijklmnoprstuvwyz"),
    "": lambda _: "",
}
"""What a family's `k` is, by the family's word for it."""
_KEPT = re.compile(r"^    (count|total|result|product|counts) = (0|1|\[\]|\{\})$", re.MULTILINE)
_AT_FIRST = {"0": "zero", "1": "one", "[]": "an empty list", "{}": "an empty dictionary"}


def shown(value: object) -> str:
    """A value as Python writes it, with double quotes."""
    return repr(value).replace("'", '"')


def draw(rng: Random) -> Function:
    """Any function of any family, under the family's own name."""
    own_name, family = rng.choice(list(FAMILIES.items()))
    return Function(family, own_name, DRAWN[family.k](rng))


def write(rng: Random) -> list[Exchange]:
    """A request for a function and up to two changes or questions; at times one that cannot be met."""
    if rng.random() < 0.05:
        return _refuse(rng)
    function = draw(rng)
    prescribed = rng.random() < 0.65
    if prescribed:
        function = replace(function, name=function_name(rng))
    form = rng.choice(FORMS.prescribed if prescribed else FORMS.free)
    if "{parameter}" in form and function.family.takes in OWN_PARAMETERS and rng.random() < 0.85:
        function = replace(function, called=several(rng))
    does = function.fill(rng.choice(function.family.does))
    question = form.format(name=function.name, does=does, parameter=function.parameter)
    dialogue = [Exchange(as_typed(question, rng), _answer(function, rng))]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        exchange, function = _follow_up(function, rng)
        dialogue.append(exchange)
    return dialogue


def _answer(function: Function, rng: Random, doc: bool = True) -> str:
    head = function.fill(rng.choice(FORMS.heads).format(does=function.family.does[0]))
    tail = rng.choice(("", "\n" + function.fill(function.family.how), "\n" + function.example()))
    return f"{head}\n```python\n{function.source(doc)}\n```{tail}"


def _follow_up(function: Function, rng: Random) -> tuple[Exchange, Function]:
    """A change or a question, its answer, and the function as it is then."""
    kinds: list[str] = ["rename", "how", "what", "example", "bare"]
    if function.family.k:
        kinds += ["other", "other"]
    kind = rng.choice(kinds)
    if kind == "rename":
        function = replace(function, name=function_name(rng))
        question = rng.choice(FORMS.rename).format(name=function.name)
    elif kind == "other":
        function = replace(function, k=DRAWN[function.family.k](rng))
        question = rng.choice(FORMS.other).format(k=function.k)
    elif kind == "bare":
        question = rng.choice(
            ("Without the docstring.", "Leave out the docstring.", "The same without the docstring, please.")
        )
        return Exchange(as_typed(question, rng), _answer(function, rng, doc=False)), function
    elif kind == "how":
        answer = f"This is how {function.name} works. {function.how()}"
        return Exchange(as_typed(rng.choice(FORMS.how + guide.FORMS.more), rng), answer), function
    elif kind == "what":
        answer = f"In short: the function {function.name} {function.fill(function.family.does[0])}."
        return Exchange(as_typed(rng.choice(FORMS.what + guide.FORMS.short), rng), answer), function
    else:
        return Exchange(as_typed(rng.choice(guide.FORMS.example), rng), function.example(again=True)), function
    return Exchange(as_typed(question, rng), _answer(function, rng)), function


def _refuse(rng: Random) -> list[Exchange]:
    thing = rng.choice(FORMS.unknown)
    does = draw(rng)
    answer = (
        f"I do not know how to write {thing}. I am a tiny model and know only small Python functions, "
        f"for example one that {does.fill(does.family.does[0])}."
    )
    return [Exchange(as_typed(rng.choice(FORMS.requests).format(thing=thing), rng), answer)]
