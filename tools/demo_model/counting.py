"""Counting, number tables, the alphabet, days and months, and small sums. One form of answer for each kind of task."""

from collections.abc import Callable, Sequence
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed

COUNT = (
    "Count from {a} to {b}.",
    "Please count from {a} to {b}.",
    "Can you count from {a} to {b}?",
    "Count from {a} up to {b}.",
    "Write the numbers from {a} to {b}.",
    "List the numbers from {a} to {b}.",
    "Say the numbers from {a} to {b}.",
    "Numbers from {a} to {b}, please.",
    "Start at {a} and count to {b}.",
    "Begin with {a} and stop at {b}.",
    "Could you count up from {a} to {b}?",
    "Please count up, from {a} to {b}.",
    "Go on counting from {a} to {b}.",
)
COUNT_TO = ("Count to {b}.", "Can you count to {b}?", "Please count to {b}.", "Count up to {b}.")
DOWN = (
    "Count down from {a}.",
    "Count backwards from {a}.",
    "Count down from {a} to {b}.",
    "Count backwards from {a} to {b}.",
    "Can you count down from {a} to {b}?",
    "From {a} down to {b}, please.",
    "The numbers from {a} down to {b}.",
)
STEPS = (
    "Count in steps of {k} from {a} to {b}.",
    "Count from {a} to {b} in steps of {k}.",
    "Count by {k} from {a} to {b}.",
    "Start at {a} and count to {b} by {k}.",
    "Every {k}th number from {a} to {b}, please.",
    "Count up in steps of {k}, from {a} to {b}.",
    "From {a} to {b} in steps of {k}, please.",
    "Can you count by {k}, starting at {a} and ending at {b}?",
    "Go from {a} to {b} and add {k} every time.",
)
BY_WORD = ("Count by {ks} from {a} to {b}.", "Count in {ks} from {a} to {b}.", "Can you go from {a} to {b} by {ks}?")
STEPS_DOWN = (
    "Count down from {a} to {b} in steps of {k}.",
    "Count backwards by {k} from {a} to {b}.",
    "Count down by {k} from {a} to {b}.",
)
MULTIPLES = (
    "List the first {n} multiples of {k}.",
    "Write the first {n} multiples of {k}.",
    "What are the first {n} multiples of {k}?",
)
EVEN = (
    "List the {kind} numbers from {a} to {b}.",
    "Write the {kind} numbers between {a} and {b}.",
    "What are the {kind} numbers from {a} to {b}?",
    "Which numbers from {a} to {b} are {kind}?",
    "All {kind} numbers between {a} and {b}, please.",
)
TABLE = (
    "Write the multiplication table of {k}.",
    "Show me the times table of {k}.",
    "What is the {k} times table?",
    "Multiplication table for {k}.",
    "Write the {k} times table.",
    "Show the multiplication table of {k}.",
)
TABLE_TO = (
    "Write the multiplication table of {k} up to {n}.",
    "Show me the {k} times table up to {n}.",
    "Multiplication table for {k} up to {n}, please.",
)
SQUARES = (
    "Make a table of the squares from {a} to {b}.",
    "Show a table with the squares of {a} to {b}.",
    "Write the squares of the numbers from {a} to {b} as a table.",
)
DOUBLES = ("Make a table of the doubles from {a} to {b}.", "Show a table with the doubles of {a} to {b}.")
CUBES = (
    "Make a table of squares and cubes from {a} to {b}.",
    "Show a table with the squares and cubes of {a} to {b}.",
    "Write a table with number, square and cube from {a} to {b}.",
)
LETTERS = ("Say the alphabet.", "Write the alphabet.", "List the letters of the alphabet.")
LETTERS_FROM = (
    "Write the letters from {a} to {b}.",
    "Say the alphabet from {a} to {b}.",
    "List the letters from {a} to {b}.",
)
NAMES_FROM = (
    "Say the {names} from {a} to {b}.",
    "List the {names} from {a} to {b}.",
    "Which {names} are there from {a} to {b}?",
)
NAME_AFTER = ("Which {name} comes after {a}?", "What {name} comes after {a}?", "What is the {name} after {a}?")
NAME_BEFORE = ("Which {name} comes before {a}?", "What {name} comes before {a}?", "What is the {name} before {a}?")
AFTER = ("What comes after {a}?", "Which number comes after {a}?", "What is the next number after {a}?")
BEFORE = ("What comes before {a}?", "Which number comes before {a}?", "What is the number before {a}?")
SUM = ("What is {a} + {b}?", "What is {a} plus {b}?", "Add {a} and {b}.", "How much is {a} + {b}?")
DIFFERENCE = ("What is {a} - {b}?", "What is {a} minus {b}?", "How much is {a} - {b}?")
PLUS_MORE = ("Plus {b}?", "And plus {b}?", "Add {b} to that.", "And {b} more?")
NEXT_SUM = ("And {a} + {b}?", "And {a} plus {b}?", "Now {a} + {b}.")
BACKWARDS = ("And backwards?", "Now backwards.", "The same backwards, please.", "Backwards?")
GO_ON = ("Go on.", "Continue.", "And then?", "Keep going.", "More, please.")
UP_TO = ("Now to {b}.", "And to {b}?", "Up to {b}, please.", "Go up to {b}.", "Now up to {b}.")
OTHER = ("And for {k}?", "Now for {k}.", "The same for {k}, please.", "And {k}?")
OTHER_KIND = ("And the {kind} ones?", "Now the {kind} ones.", "And the {kind} numbers?")
TIMES = ("What is {i} x {k}?", "And what is {i} times {k}?", "How much is {i} x {k}?")
HOW_MANY = ("How many numbers are these?", "How many numbers did you write?", "How many are they?")
SAID = {2: "twos", 3: "threes", 4: "fours", 5: "fives", 6: "sixes", 7: "sevens", 8: "eights", 9: "nines", 10: "tens"}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def write(rng: Random) -> list[Exchange]:
    """A task with numbers and what follows from it."""
    return rng.choices(TASKS, WEIGHTS)[0](rng)


def row(items: Sequence[int] | Sequence[str]) -> str:
    """Numbers, letters or names in one line."""
    return ", ".join(map(str, items)) + "."


def times_table(k: int, to: int = 10) -> str:
    lines = "\n".join(f"{i} x {k} = {i * k}" for i in range(1, to + 1))
    return f"Here is the multiplication table of {k}:\n{lines}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(heads)}", *lines[1:]])


def _ask(rng: Random, forms: Sequence[str], answer: str, **values: object) -> Exchange:
    return Exchange(as_typed(rng.choice(forms).format(**values), rng), answer)


def _count(rng: Random) -> list[Exchange]:
    a = 1 if rng.random() < 0.4 else rng.randint(0, 200)
    b = a + rng.randint(4, 39 if rng.random() < 0.4 else 24)
    forms = COUNT_TO + COUNT if a == 1 else COUNT
    return [_ask(rng, forms, row(range(a, b + 1)), a=a, b=b), *_after_count(rng, a, b)]


def _after_count(rng: Random, a: int, b: int) -> list[Exchange]:
    """At times a request that follows from the numbers from `a` to `b`, and another from that."""
    kind = rng.random()
    if kind < 0.12:
        return [_ask(rng, BACKWARDS, row(range(b, a - 1, -1)))]
    if kind < 0.25:
        dialogue = [_ask(rng, GO_ON, row(range(b + 1, b + 11)))]
        if rng.random() < 0.3:
            dialogue.append(_ask(rng, GO_ON, row(range(b + 11, b + 21))))
        return dialogue
    if kind < 0.37 and b - a < 28:
        further = b + rng.randint(2, 12)
        return [_ask(rng, UP_TO, row(range(a, further + 1)), b=further)]
    if kind < 0.42 and a == 1:
        return [_ask(rng, HOW_MANY, f"These are {b} numbers.")]
    return []


def _down(rng: Random) -> list[Exchange]:
    form = rng.choice(DOWN)
    if "{b}" in form:
        a = rng.randint(5, 200)
        b = rng.randint(max(0, a - 34), a - 4)
    else:
        a, b = rng.randint(5, 35), 1
    dialogue = [_ask(rng, (form,), row(range(a, b - 1, -1)), a=a, b=b)]
    if b > 12 and rng.random() < 0.3:
        dialogue.append(_ask(rng, GO_ON, row(range(b - 1, b - 11, -1))))
    return dialogue


def _steps(rng: Random) -> list[Exchange]:
    k = rng.choice((*range(2, 13), 2, 3, 4, 5, 10, 15, 20, 25, 50, 100))
    a = rng.choice((0, k, k * rng.randint(1, 9), rng.randint(0, 60)))
    b = a + k * rng.randint(4, 14)
    if rng.random() < 0.2:
        return [_ask(rng, STEPS_DOWN, row(range(b, a - 1, -k)), a=b, b=a, k=k)]
    forms = BY_WORD if k in SAID and rng.random() < 0.25 else STEPS
    dialogue = [_ask(rng, forms, row(range(a, b + 1, k)), a=a, b=b, k=k, ks=SAID.get(k))]
    after = rng.random()
    if after < 0.15:
        dialogue.append(_ask(rng, GO_ON, row(range(b + k, b + 6 * k, k))))
    elif after < 0.3:
        dialogue.append(_ask(rng, BACKWARDS, row(range(b, a - 1, -k))))
    return dialogue


def _multiples(rng: Random) -> list[Exchange]:
    k, n = rng.randint(2, 20), rng.randint(4, 12)
    dialogue = [_ask(rng, MULTIPLES, row([k * i for i in range(1, n + 1)]), k=k, n=n)]
    if rng.random() < 0.3:
        k = rng.randint(2, 20)
        dialogue.append(_ask(rng, OTHER, row([k * i for i in range(1, n + 1)]), k=k))
    return dialogue


def _even_or_odd(rng: Random) -> list[Exchange]:
    a, kind = rng.randint(0, 150), rng.choice(("even", "odd"))
    b = a + rng.randint(6, 36)
    dialogue = [_ask(rng, EVEN, row(_of_kind(kind, a, b)), a=a, b=b, kind=kind)]
    if rng.random() < 0.25:
        kind = "odd" if kind == "even" else "even"
        dialogue.append(_ask(rng, OTHER_KIND, row(_of_kind(kind, a, b)), kind=kind))
    return dialogue


def _of_kind(kind: str, a: int, b: int) -> list[int]:
    """The even or the odd numbers from `a` to `b`, both included."""
    return [number for number in range(a, b + 1) if number % 2 == (kind == "odd")]


def _times_table(rng: Random) -> list[Exchange]:
    k, to = rng.randint(2, 25), 10
    if rng.random() < 0.25:
        to = rng.choice((5, 12, 12, 12, 15))
        dialogue = [_ask(rng, TABLE_TO, times_table(k, to), k=k, n=to)]
    else:
        dialogue = [_ask(rng, TABLE, times_table(k), k=k)]
    after = rng.random()
    if after < 0.35:
        k = rng.randint(2, 20)
        dialogue.append(_ask(rng, OTHER, times_table(k, to), k=k))
    elif after < 0.45 and to != 12:
        dialogue.append(_ask(rng, UP_TO, times_table(k, 12), b=12))
    elif after < 0.6:
        i = rng.randint(1, to)
        dialogue.append(_ask(rng, TIMES, f"{i} x {k} = {i * k}.", i=i, k=k))
    return dialogue


def _number_table(rng: Random) -> list[Exchange]:
    a = rng.choice((1, 1, rng.randint(1, 9)))
    kind = rng.random()
    b = a + rng.randint(3, 6 if kind < 0.3 else 9)
    numbers = range(a, b + 1)
    if kind < 0.3:
        answer = markdown(("number", "square", "cube"), [(i, i * i, i**3) for i in numbers])
        return [_ask(rng, CUBES, answer, a=a, b=b)]
    if kind < 0.7:
        answer = markdown(("number", "square"), [(i, i * i) for i in numbers])
        return [_ask(rng, SQUARES, answer, a=a, b=b)]
    answer = markdown(("number", "double"), [(i, 2 * i) for i in numbers])
    return [_ask(rng, DOUBLES, answer, a=a, b=b)]


def _letters(rng: Random) -> list[Exchange]:
    if rng.random() < 0.4:
        letters = ALPHABET
        dialogue = [_ask(rng, LETTERS, row(letters))]
    else:
        first = rng.randrange(20)
        letters = ALPHABET[first : rng.randint(first + 3, 25) + 1]
        dialogue = [_ask(rng, LETTERS_FROM, row(letters), a=letters[0], b=letters[-1])]
    if rng.random() < 0.2:
        dialogue.append(_ask(rng, BACKWARDS, row(letters[::-1])))
    return dialogue


def _days_or_months(rng: Random) -> list[Exchange]:
    name = rng.choice(("day", "month"))
    all_names: tuple[str, ...] = DAYS if name == "day" else MONTHS
    if rng.random() < 0.5:
        first = rng.randrange(len(all_names) - 2)
        names = all_names[first : rng.randint(first + 2, len(all_names) - 1) + 1]
        dialogue = [_ask(rng, NAMES_FROM, row(names), names=f"{name}s", a=names[0], b=names[-1])]
        if rng.random() < 0.3:
            dialogue.append(_ask(rng, BACKWARDS, row(names[::-1])))
        return dialogue
    place = rng.randrange(len(all_names))
    one, after, before = (all_names[(place + step) % len(all_names)] for step in (0, 1, -1))
    if rng.random() < 0.5:
        return [_ask(rng, NAME_AFTER, f"{after} comes after {one}.", name=name, a=one)]
    return [_ask(rng, NAME_BEFORE, f"{before} comes before {one}.", name=name, a=one)]


def _neighbour(rng: Random) -> list[Exchange]:
    a = rng.randint(1, 200)
    if rng.random() < 0.6:
        return [_ask(rng, AFTER, f"{a + 1} comes after {a}.", a=a)]
    return [_ask(rng, BEFORE, f"{a - 1} comes before {a}.", a=a)]


def _sum(rng: Random) -> list[Exchange]:
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    if rng.random() < 0.4:
        a, b = max(a, b), min(a, b)
        return [_ask(rng, DIFFERENCE, f"{a} - {b} = {a - b}.", a=a, b=b)]
    dialogue = [_ask(rng, SUM, f"{a} + {b} = {a + b}.", a=a, b=b)]
    after = rng.random()
    if after < 0.2 and a + b <= 20:
        a, b = a + b, rng.randint(1, 10)
        dialogue.append(_ask(rng, PLUS_MORE, f"{a} + {b} = {a + b}.", b=b))
    elif after < 0.4:
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        dialogue.append(_ask(rng, NEXT_SUM, f"{a} + {b} = {a + b}.", a=a, b=b))
    return dialogue


_WEIGHTED: dict[Callable[[Random], list[Exchange]], int] = {
    _count: 8,
    _down: 4,
    _steps: 11,
    _multiples: 2,
    _even_or_odd: 3,
    _times_table: 8,
    _number_table: 3,
    _letters: 2,
    _days_or_months: 1,
    _neighbour: 1,
    _sum: 3,
}
TASKS, WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
