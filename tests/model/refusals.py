"""What every refusal to load has to be: one sentence that says what and why, and a hint that says what to do."""

from collections.abc import Callable

import pytest

from ladechat.model.checkpoint.files import LoadError, LoadErrorCode


def refused(call: Callable[[], object]) -> LoadError:
    """The error of a call that has to be refused."""
    with pytest.raises(LoadError) as caught:
        call()
    return caught.value


def assert_refused(call: Callable[[], object], code: LoadErrorCode, says: str) -> LoadError:
    """A call is refused with this code, in a sentence that says this. The error, whose hint may be looked at."""
    error = refused(call)
    assert_told(error, code, says)
    return error


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
