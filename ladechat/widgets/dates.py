"""Dates as lists show them."""

from datetime import datetime, timedelta


def dated(when: datetime) -> str:
    """Return a local time as today, 14:05; yesterday, 14:05; or 03 Jan 2020, 14:05."""
    today = datetime.now().astimezone().date()
    near = {today: "today", today - timedelta(days=1): "yesterday"}
    return f"{near.get(when.date()) or f'{when:%d %b %Y}'}, {when:%H:%M}"
