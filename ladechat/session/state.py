"""The states of an engine session, and the transitions between them."""

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """The state of the engine, as far as its events have been shown."""

    STARTING = auto()
    """The process was started and has not sent a header yet."""

    LOADING = auto()
    DOWNLOADING = auto()
    """Loading, and downloading files, which can be stopped."""

    READY = auto()
    ANSWERING = auto()
    STOPPING = auto()
    """Answering; a stop was sent."""

    RESTARTING = auto()
    """The previous engine is being ended; a new one follows."""

    ENDED = auto()


class Trigger(Enum):
    """A trigger of a state change: an event of the engine, its end, or a request of the user."""

    HEADER = auto()
    LOAD = auto()
    DOWNLOAD = auto()
    READY = auto()
    TURN_STARTED = auto()
    TURN_FINISHED = auto()
    END = auto()
    STOP = auto()
    RESTART = auto()
    RESTARTED = auto()


_LOADING = (State.LOADING, State.DOWNLOADING)
_IN_TURN = (State.ANSWERING, State.STOPPING)
LOADED = (State.READY, *_IN_TURN)
"""The states of an engine that accepts questions."""

TRANSITIONS: Mapping[Trigger, Mapping[State, State]] = {
    Trigger.HEADER: {State.STARTING: State.LOADING},
    Trigger.LOAD: dict.fromkeys(_LOADING, State.LOADING),
    Trigger.DOWNLOAD: dict.fromkeys(_LOADING, State.DOWNLOADING),
    Trigger.READY: dict.fromkeys(_LOADING, State.READY),
    Trigger.TURN_STARTED: {State.READY: State.ANSWERING},
    Trigger.TURN_FINISHED: dict.fromkeys(_IN_TURN, State.READY),
    Trigger.STOP: {State.ANSWERING: State.STOPPING},
    Trigger.END: dict.fromkeys(set(State) - {State.RESTARTING}, State.ENDED),
    Trigger.RESTART: dict.fromkeys(set(State) - {State.RESTARTING}, State.RESTARTING),
    Trigger.RESTARTED: {State.RESTARTING: State.STARTING},
}
"""The state after each trigger. States that are not listed stay: an engine may send anything at any time."""

SILENCE_SECONDS: Mapping[State, float] = {
    **dict.fromkeys((State.STARTING, *_LOADING), 60.0),
    **dict.fromkeys(_IN_TURN, 30.0),
}
"""The seconds without an event after which an engine counts as stuck. In other states no event is expected."""


def following(state: State, trigger: Trigger) -> State:
    """Return the state after a trigger."""
    return TRANSITIONS[trigger].get(state, state)
