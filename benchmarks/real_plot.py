"""Bars of tokens per second with their intervals, as SVG: a picture of a result of `benchmarks.real`.

Run as `python -m benchmarks.real_plot RESULT.json PICTURE.svg`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import command_line
from ladechat.bench.options import PLAIN
from ladechat.train.svg import COLOURS, FONT, text

FAMILIES = ("transformers", "llama.cpp", "int8", "int4", "old")
"""How the names of methods begin that are not of this checkout in 16 bits; each has a colour."""

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 900, 250, 780, 60, 22, 14
"""Sizes of the picture, edges of the bars, and heights, in pixels."""


def main() -> None:
    """Read a result and draw it."""
    parser = command_line(__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    options.picture.write_text(picture(json.loads(options.result.read_text(encoding="utf-8"))), encoding="utf-8")


def picture(report: Mapping[str, Any]) -> str:
    """Return the bars of all methods that have a rate, in the order of the report."""
    rows = {name: one["overall"] for name, one in report["methods"].items() if one["overall"]["tokens_per_second"]}
    most = max(row["intervals"]["tokens_per_second"][1] for row in rows.values())
    height = TOP + ROW * len(rows) + 10
    how = f"temperature {report['temperature']:g}" if report["temperature"] else "greedy"
    machine = f"{report['threads']} threads of {report['machine']['processor']}"
    asked = f"{len(report['questions'])} questions, answers of up to {report['tokens']} tokens"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        text(LEFT, 22, f"Tokens a second: {report['model']}, {how}, {machine}", "start"),
        text(LEFT, 40, f"{asked}; lines are 95 % intervals over questions", "start"),
    ]
    for number, (name, row) in enumerate(rows.items()):
        top, middle = TOP + ROW * number, TOP + ROW * number + BAR / 2
        low, high = row["intervals"]["tokens_per_second"]
        end, least, greatest = (LEFT + value / most * (RIGHT - LEFT) for value in (row["tokens_per_second"], low, high))
        shown, colour = label(name)
        parts.append(text(LEFT - 8, middle + 4, shown, "end"))
        parts.append(f'<rect x="{LEFT}" y="{top}" width="{end - LEFT:.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(f'<path d="M{least:.1f} {middle}H{greatest:.1f}" stroke="black" stroke-width="2"/>')
        parts.append(text(greatest + 8, middle + 4, f"{row['tokens_per_second']:.1f}", "start"))
    return "\n".join([*parts, "</svg>", ""])


def label(method: str) -> tuple[str, str]:
    """Return what a method is called in the picture, and its colour."""
    family = next((number for number, name in enumerate(FAMILIES, start=1) if method.startswith(name)), 0)
    others = family and FAMILIES[family - 1] in ("transformers", "llama.cpp")
    return (method if others else f"ladechat {method.replace(PLAIN, 'plain')}"), COLOURS[family]


if __name__ == "__main__":
    main()
