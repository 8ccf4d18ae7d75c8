"""The contract between an engine and the programs that watch it.

Commands go to the engine, events come back: JSON, UTF-8 (escaped to ASCII), one message a line, lines split on the byte
``\\n`` only. The tag of a command is ``"command"``, of an event ``"event"``; its value is the class name in snake case.
The first event of every stream is its ``Header``, so a stream written to a file is a recording as it stands.

A reader skips kinds and keys that it does not know, and is strict about the types of the fields it does know.
``docs/protocol.md`` describes every field with its unit.
"""

# `X as X` exports a name, which would otherwise stand in a list of its own once more.
from ladechat.protocol.codec import (
    COMMANDS as COMMANDS,
    EVENTS as EVENTS,
    decode_command as decode_command,
    decode_event as decode_event,
    encode as encode,
)
from ladechat.protocol.commands import (
    Command as Command,
    Configure as Configure,
    Generate as Generate,
    Pace as Pace,
    Ping as Ping,
    Shutdown as Shutdown,
    Stop as Stop,
    Watch as Watch,
)
from ladechat.protocol.contract import (
    FORMAT as FORMAT,
    MAX_LINE_BYTES as MAX_LINE_BYTES,
    VERSION as VERSION,
    WHERE as WHERE,
    ProtocolError as ProtocolError,
)
from ladechat.protocol.endings import (
    end_of as end_of,
    has_times as has_times,
    joined as joined,
    one_by_one as one_by_one,
    to_save as to_save,
    without_times as without_times,
)
from ladechat.protocol.events import (
    Event as Event,
    Failed as Failed,
    FailureCode as FailureCode,
    FinishReason as FinishReason,
    Header as Header,
    HistoryTrimmed as HistoryTrimmed,
    Loading as Loading,
    PassCosts as PassCosts,
    PolicyChoice as PolicyChoice,
    Pong as Pong,
    Prefilling as Prefilling,
    Ready as Ready,
    SettingsApplied as SettingsApplied,
    Step as Step,
    SystemFolded as SystemFolded,
    TurnFinished as TurnFinished,
    TurnStarted as TurnStarted,
)
from ladechat.protocol.head import Head as Head, read_head as read_head
from ladechat.protocol.packed_steps import (
    DrawnStep as DrawnStep,
    drawn as drawn,
    packed as packed,
    unpacked as unpacked,
)
from ladechat.protocol.recorded import (
    Asked as Asked,
    Closed as Closed,
    ConversationCleared as ConversationCleared,
    ConversationOpened as ConversationOpened,
    Exchange as Exchange,
    ExchangeRemoved as ExchangeRemoved,
    ExchangeRestored as ExchangeRestored,
    SystemPrompt as SystemPrompt,
)
from ladechat.protocol.values import (
    MOST as MOST,
    MOST_TEXT as MOST_TEXT,
    NO_SWITCH as NO_SWITCH,
    Candidate as Candidate,
    Decision as Decision,
    DecoderInfo as DecoderInfo,
    DraftTree as DraftTree,
    ExpectedTokens as ExpectedTokens,
    LensView as LensView,
    Memory as Memory,
    Message as Message,
    Parameter as Parameter,
    PassCost as PassCost,
    PoolView as PoolView,
    Record as Record,
    Rivals as Rivals,
    SamplingDefaults as SamplingDefaults,
    SamplingSettings as SamplingSettings,
    ServerFigures as ServerFigures,
    ServerInfo as ServerInfo,
    Settings as Settings,
    ThinkingSwitch as ThinkingSwitch,
    Timing as Timing,
    TrainedPart as TrainedPart,
    Value as Value,
    Verdict as Verdict,
    WindowView as WindowView,
    credible_speedup as credible_speedup,
)
