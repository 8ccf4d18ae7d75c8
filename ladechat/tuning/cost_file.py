"""What passes cost, kept from session to session."""

from pathlib import Path
from typing import Any

from ladechat.tuning.kept import kept_file, read_kept, write_kept

MOST_SLOTS = 1_000_000
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e6
"""No pass takes less, and nobody has waited for one that takes more: such a file is damaged."""


def costs_file(**about: object) -> Path:
    """Where the costs of a model's passes are kept, as it runs here: see `kept_file`."""
    return kept_file("costs", **about)


def read_costs(file: Path) -> dict[int, float] | None:
    """Return the seconds that are saved, by slots; None if nothing usable is."""
    return read_kept(file, _usable)


def write_costs(file: Path, seconds: dict[int, float]) -> None:
    """Save costs. Where nothing can be written they are measured again the next time."""
    write_kept(file, {"seconds": seconds})


def _usable(saved: Any) -> dict[int, float]:
    """The seconds that a file holds, by slots; of a plain pass and of larger ones."""
    costs = {int(slots): float(seconds) for slots, seconds in saved["seconds"].items()}
    sensible = all(LEAST_SECONDS <= seconds <= MOST_SECONDS for seconds in costs.values())
    if not sensible or len(costs) == 1 or min(costs) != 1 or max(costs) > MOST_SLOTS:
        raise ValueError("these are no costs")
    return costs
