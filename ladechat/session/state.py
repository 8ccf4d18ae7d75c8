"""The states of an engine session, and what leads from one to another."""

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """What the engine is doing, as far as its events have been shown."""

    STARTING = auto()
    """Its process was started and has sent no header yet."""

    LOADING = auto()
    DOWNLOADING = auto()
    """Loading, and fetching files: this can be stopped."""

    READY = auto()
    ANSWERING = auto()
    STOPPING = auto()
    """Answering; a stop was sent."""

    RESTARTING = auto()
    """The previous engine is being ended; a new one follows."""

    ENDED = auto()


class Trigger(Enum):
    """What can change the state: an event of the engine, its end, or a wish of the user."""

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
"""Those of an engine that can be asked."""

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
"""Where each trigger leads. A state that is not named stays as it is: an engine may send anything at any time."""

SILENCE_SECONDS: Mapping[State, float] = {
    **dict.fromkeys((State.STARTING, *_LOADING), 60.0),
    **dict.fromkeys(_IN_TURN, 30.0),
}
"""How long an engine may send nothing before it counts as stuck. In other states no event is due."""


def following(state: State, trigger: Trigger) -> State:
    """The state after a trigger."""
    return TRANSITIONS[trigger].get(state, state)
