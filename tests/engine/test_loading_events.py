"""What is told of loading: each stage once as it begins, and progress no oftener than a screen needs."""

import os

from ladechat.engine.loading_events import STAGES, LoadingReport
from ladechat.engine_process.stream import EventStream
from ladechat.protocol import Loading, decode_event


def test_a_stage_is_told_as_it_begins_and_its_end_even_when_all_comes_at_once() -> None:
    source, sink = os.pipe()
    report = LoadingReport(EventStream(sink))
    report.begin("fetching")
    for done in range(1, 1001):
        report.bytes_done(done, 1000)
    report.begin("reading")
    report.fraction_done(1.0)
    os.close(sink)
    with os.fdopen(source, "rb") as lines:
        events = [event for event in map(decode_event, lines) if isinstance(event, Loading)]
    assert [event.stages for event in events] == [STAGES] * len(events)
    fetching = [event for event in events if event.stage == 1]
    assert (fetching[0].doing, fetching[0].fraction, fetching[0].done_bytes) == ("fetching", None, None)
    assert (fetching[-1].done_bytes, fetching[-1].total_bytes, fetching[-1].fraction) == (1000, 1000, 1.0)
    assert len(fetching) < 500
    assert [(event.doing, event.fraction) for event in events if event.stage == 2] == [
        ("reading", None),
        ("reading", 1.0),
    ]
