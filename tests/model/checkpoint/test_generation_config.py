"""What a checkpoint says of its own generation is read as far as it makes sense, and what is left out is said."""

from pathlib import Path

import pytest

from ladechat.model.checkpoint.generation_config import SamplingDefaults, read_generation_config


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"do_sample": true, "temperature": 0.6, "top_p": 0.9, "eos_token_id": 2}',
            SamplingDefaults(do_sample=True, temperature=0.6, top_p=0.9, top_k=None),
        ),
        ('{"do_sample": false, "top_k": 20}', SamplingDefaults(False, None, None, 20)),
        ('{"temperature": 1}', SamplingDefaults(False, 1.0, None, None)),
        (
            '{"do_sample": "yes", "temperature": "hot", "top_p": NaN, "top_k": true}',
            None,
        ),
        ('{"eos_token_id": 2}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_what_the_file_says_is_what_is_shown(tmp_path: Path, text: str, found: SamplingDefaults | None) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    assert read_generation_config(tmp_path).sampling == found


def test_a_checkpoint_without_the_file_says_nothing(tmp_path: Path) -> None:
    assert read_generation_config(tmp_path).sampling is None
