"""When silence means something."""

from ladechat.session.silence import Silence


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_means_nothing_while_nothing_is_expected() -> None:
    clock = Clock()
    silence = Silence(clock)
    clock.now = 1000.0
    assert silence.beyond(None) is None


def test_silence_counts_from_the_last_event_and_only_beyond_the_limit() -> None:
    clock = Clock()
    silence = Silence(clock)
    clock.now = 5.0
    silence.end()
    clock.now = 15.0
    assert silence.beyond(10.0) is None
    clock.now = 17.5
    assert silence.beyond(10.0) == 12.5
    silence.end()
    assert silence.beyond(10.0) is None
