"""An engine whose model cannot verify several tokens at once answers all the same, one token a step, and says why."""

from pathlib import Path

import pytest

from ladechat.protocol import Configure, SettingsApplied
from tests.checkpoints import save_recurrent
from tests.engine.wire import started


@pytest.mark.full
def test_a_model_with_a_recurrent_state_is_decoded_plainly_whatever_decoder_is_wanted(tmp_path: Path) -> None:
    wire, ready = started("--model", str(save_recurrent(tmp_path)), "--decoder", "lookahead")
    assert ready.single_token is not None and "one token a pass" in ready.single_token
    assert [info.name for info in ready.decoders] == ["autoregressive"]
    assert ready.settings.decoder == "autoregressive"
    steps, finished = wire.ask("What is it?", max_new_tokens=6)
    assert [len(step.token_ids) for step in steps] == [1] * len(finished.token_ids)
    wire.send(Configure(decoder="jacobi", parameters={"window": 9}))
    applied = wire.until(SettingsApplied).settings
    assert (applied.decoder, applied.parameters) == ("autoregressive", {})
    steps, finished = wire.ask("And now?", max_new_tokens=6)
    assert finished.reason in ("eos", "max_new_tokens") and steps
    wire.close()
