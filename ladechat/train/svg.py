"""A chart of lines as SVG."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart."""

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 420, 60, 40, 640, 370
"""Sizes of the picture, and edges of the frame in it, in pixels."""
FONT = 'font-family="sans-serif" font-size="12"'


class Curve(NamedTuple):
    """A line: name, points from left to right, number of its colour, dashes in SVG's format."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    dashes: str


def chart(title: str, across: str, up: str, lines: Sequence[Curve]) -> str:
    """Return a chart of lines, at least one with a point, over whole numbers, from 0 up, with a title and a legend.

    `across` and `up` are the names of the axes.
    """
    places = sorted({x for line in lines for x, _ in line.points})
    top = max(y for line in lines for _, y in line.points) or 1.0
    first, span = places[0], (places[-1] - places[0]) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - first) / span * (RIGHT - LEFT), BOTTOM - y / top * (BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, 22, title, "start"),
        text((LEFT + RIGHT) / 2, HEIGHT - 10, across, "middle"),
        text(LEFT - 8, TOP - 6, up, "end"),
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="black"/>',
        *(text(at(x, 0)[0], BOTTOM + 18, f"{x:g}", "middle") for x in places),
        *(text(LEFT - 8, at(first, top * part / 4)[1] + 4, f"{top * part / 4:.2f}", "end") for part in range(5)),
    ]
    for number, line in enumerate(lines):
        look = f'fill="none" stroke="{COLOURS[line.colour % len(COLOURS)]}" stroke-dasharray="{line.dashes or "none"}"'
        points = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in line.points)
        height = TOP + 16 * number
        parts.append(f'<polyline points="{points}" {look} stroke-width="2"/>')
        parts.append(f'<path d="M{RIGHT + 15} {height}h24" {look} stroke-width="2"/>')
        parts.append(text(RIGHT + 45, height + 4, line.name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def text(x: float, y: float, words: str, anchor: str) -> str:
    """Return words at a place; `anchor` says which of their ends is there."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
