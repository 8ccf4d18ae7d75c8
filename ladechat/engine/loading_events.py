"""Reports to the stream what the engine is doing before it can answer, and how far it is."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from ladechat import protocol
from ladechat.engine_process.stream import EventStream
from ladechat.protocol import Loading

if TYPE_CHECKING:
    from ladechat.engine.service import Service
    from ladechat.model.trained import Trained

STAGES = 4
SECONDS_BETWEEN = 0.1
"""The minimum time between two events of one stage: a screen needs no more, and a recording saves them all."""


class LoadingReport:
    """Emits `loading` events: one at the beginning of each stage, and the progress of long ones."""

    def __init__(self, stream: EventStream, stages: int = STAGES) -> None:
        self._stream = stream
        self._stages = stages
        self._stage = 0
        self._doing = ""
        self._stoppable = False
        self._last = 0.0

    def begin(self, doing: str, *, stoppable: bool = False) -> None:
        """Start the next stage; `stoppable` means that the user can skip it."""
        self._stage += 1
        self._doing, self._stoppable = doing, stoppable
        self._emit()

    def bytes_done(self, done: int, total: int) -> None:
        """Report how many bytes of the stage are done."""
        self.fraction_done(done / total if total else 1.0, done, total)

    def fraction_done(self, fraction: float, done: int | None = None, total: int | None = None) -> None:
        """Report how much of the stage is done, 0 to 1."""
        if fraction >= 1 or time.monotonic() - self._last >= SECONDS_BETWEEN:
            self._emit(fraction, done, total)

    def _emit(self, fraction: float | None = None, done: int | None = None, total: int | None = None) -> None:
        self._last = time.monotonic()
        self._stream.emit(
            Loading(
                stage=self._stage,
                stages=self._stages,
                doing=self._doing,
                fraction=fraction,
                done_bytes=done,
                total_bytes=total,
                stoppable=self._stoppable,
            )
        )


def ready(service: "Service") -> protocol.Ready:
    """Return the event that describes a loaded model."""
    loaded, settings = service.loaded, service.decoders.settings
    in_vain = settings.thinking != "auto" and not service.chat.takes_thinking
    sampling = loaded.sampling_defaults
    return protocol.Ready(
        model=loaded.name,
        model_type=loaded.model_type,
        tokenizer=loaded.tokenizer_fingerprint,
        parameters=loaded.parameters,
        layers=loaded.layers,
        vocabulary=loaded.vocabulary,
        context_length=loaded.context_length,
        device=loaded.device,
        dtype=loaded.dtype,
        chat_template=service.chat.template.format.origin,
        eos_ids=sorted(loaded.eos_ids),
        load_seconds=loaded.load_seconds,
        settings=settings,
        quantization=loaded.quantization,
        sampling_defaults=protocol.SamplingDefaults(**asdict(sampling)) if sampling else None,
        decoders=service.decoders.offered(),
        single_token=loaded.runner.capabilities.single_token,
        memory=service.memory(),
        notices=[*loaded.notices, *[protocol.NO_SWITCH] * in_vain],
        trained=[_trained(part) for part in loaded.maps.by_kind.values()],
        thinking=service.chat.takes_thinking,
    )


def _trained(part: "Trained") -> protocol.TrainedPart:
    """Return maps or heads as a value of the protocol."""
    return protocol.TrainedPart(
        kind=part.kind,
        layers=list(getattr(part.maps, "layers", ())),
        width=part.maps.weights.shape[-1],
        right=[round(share, 4) for share in part.right or part.chances[0][:1]],
        steps=part.steps,
    )
