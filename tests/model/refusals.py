"""What every refusal to load has to be: one sentence that says what and why, and a hint that says what to do."""

from ladechat.model.checkpoint.files import LoadError, LoadErrorCode


def assert_told(error: LoadError, code: LoadErrorCode, says: str) -> None:
    """The error has this code, says this, and is fit to be read."""
    message = str(error)
    assert error.code == code
    assert says in message
    for text in (message, error.hint):
        assert text == text.strip() != ""
        assert "\n" not in text
        assert "Traceback" not in text
    assert message[-1] in ".!?"
    assert len(message) < 400
