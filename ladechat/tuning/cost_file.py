"""What passes cost, kept from session to session."""

from pathlib import Path

from ladechat.tuning.kept import kept_file, read_kept, write_kept


def costs_file(**about: object) -> Path:
    """Where the costs of a model's passes are kept, as it runs here: see `kept_file`."""
    return kept_file("costs", **about)


def read_costs(file: Path) -> dict[int, float] | None:
    """The seconds that are kept, by slots; None if nothing usable is."""
    try:
        found = {int(slots): float(seconds) for slots, seconds in read_kept(file, "seconds").items()}
    except (ValueError, TypeError, AttributeError):
        return None
    usable = 1 in found and len(found) > 1 and all(0 < one < float("inf") for one in found.values())
    return found if usable and min(found) == 1 else None


def write_costs(file: Path, seconds: dict[int, float]) -> None:
    """Keep costs. Where nothing can be written they are measured again the next time."""
    write_kept(file, "seconds", seconds)
