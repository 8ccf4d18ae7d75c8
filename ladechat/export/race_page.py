"""Writes a race as one self-contained page: all decoders side by side, played on the app's two clocks."""

from collections.abc import Iterator, Sequence

from ladechat.export.page import answer, document, hue, inline, legend, measured_by, table, text
from ladechat.screens.clocks import described
from ladechat.session.measuring import Measuring
from ladechat.session.playing import PASSES_PER_SECOND, Clock, Track
from ladechat.session.race import Lane
from ladechat.widgets.formatting import counted, duration, plural
from ladechat.widgets.race import SEPARATOR
from ladechat.widgets.units import PASS, in_unit, shared_unit, unit_of

BARS = (
    "Below each name a bar for each pass: as wide as the time that it took{high}. On the other clock all are equally "
    "wide."
)
HIGH = ", as high as the tokens that it brought"
CONTROLS = (
    '<div class="walk player"><button type="button" class="play">Play</button>'
    '<button type="button" class="back" aria-label="One pass back">←</button>'
    '<button type="button" class="on" aria-label="One pass on">→</button>'
    '<label><input type="range" min="0" value="0" step="any" aria-label="Moment" autocomplete="off">'
    '<span class="place"></span></label>{more}<p class="keys">{keys}</p></div>'
)
"""What plays a page: hidden without a script."""
KEYS = "Space plays and pauses, ← and → go pass by pass, C changes the clock."


def race_page(race: Measuring) -> str:
    """Return the page of a race that has been measured."""
    lanes = [lane for lane in race.lanes if lane.steps]
    servers = [lane.server for lane in lanes]
    unit, kind = shared_unit(servers), "decoder" if None in servers else "server"
    slow = Track(lanes)
    slow.change_clock()
    paces = f'data-passes="{PASSES_PER_SECOND:g}" data-seconds="{slow.speed:g}"'
    body = [
        f'<p class="said question">{text(race.question.strip())}</p>',
        in_unit(CONTROLS.format(more=_clock(unit), keys=KEYS), unit),
        f'<div class="lanes" data-unit="{unit}" {paces}>',
        *(line for lane in lanes for line in _lane(lane, lanes)),
        "</div>",
        '<div class="conclusions">',
        *(f"<p>{inline(sentence)}</p>" for sentence in race.conclusions()),
        "</div>",
        f'<p class="legend">{legend(servers)} {in_unit(BARS, unit).format(high=HIGH if unit == PASS else "")}</p>',
        f'<p class="about">One {kind} after another was {measured_by(race.header)}.</p>' if race.header else "",
    ]
    return document(f"A race of {counted(len(lanes), kind)}", body, ["page", "player", "race"])


def _clock(unit: str) -> str:
    """Return the button that changes the clock, and what each clock means where a step is a `unit`."""
    named = (
        f'<span class="clock" data-name="{inline(name)}">{inline(sentence)}</span>'
        for name, sentence in (described(clock, unit) for clock in Clock)
    )
    return f'<button type="button" class="clocks">Clock</button>{"".join(named)}'


def _lane(lane: Lane, lanes: Sequence[Lane]) -> Iterator[str]:
    tokens, passes = lane.tokens, lane.passes
    counts = [] if tokens is None else [counted(tokens, "token")]
    counts.append(counted(len(lane.steps), unit_of(lane.server)))
    counts += [f"{tokens / passes:.2f} a pass"] if tokens is not None and passes else []
    figures = (*counts, duration(lane.seconds))
    yield f'<section class="lane{" whole" if lane.whole else ""}" data-unit="{unit_of(lane.server)}">'
    yield f'<h2>{inline(lane.label)}<span class="standing"></span></h2>'
    yield f'<p class="figures">{SEPARATOR.join(figures)}</p>'
    yield _bars(lane, lanes)
    yield answer(lane.steps)
    yield from table(lane.steps, lane.server, timed=True)
    yield "</section>"


def _bars(lane: Lane, lanes: Sequence[Lane]) -> str:
    """Return a bar for each pass, on a scale that all lanes share: milliseconds × tokens."""
    width = max(1000 * each.seconds for each in lanes)
    height = max(len(step.token_ids) for each in lanes for step in each.steps)
    bars, left = "", 0.0
    for step in lane.steps:
        tokens, took = len(step.token_ids), step.timing.step_ms
        bars += f'<rect class="{hue(step)}" x="{left:.2f}" y="{height - tokens}" width="{took:.2f}" height="{tokens}"/>'
        left += took
    scale = f'viewBox="0 0 {width:.2f} {height}" preserveAspectRatio="none"'
    label = f"The {plural(2, unit_of(lane.server))} by their time"
    return f'<svg class="bars" {scale} role="img" aria-label="{label}">{bars}</svg>'
