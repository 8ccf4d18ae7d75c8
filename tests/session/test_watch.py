"""When silence means something."""

from ladechat.session.watch import Watch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_means_nothing_while_nothing_is_due() -> None:
    clock = Clock()
    watch = Watch(clock)
    clock.now = 1000.0
    assert watch.silence() is None


def test_silence_counts_from_the_last_word_and_only_beyond_patience() -> None:
    clock = Clock()
    watch = Watch(clock)
    watch.patience = 10.0
    clock.now = 5.0
    watch.heard()
    clock.now = 15.0
    assert watch.silence() is None
    clock.now = 17.5
    assert watch.silence() == 12.5
    watch.heard()
    assert watch.silence() is None
