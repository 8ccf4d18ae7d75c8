"""Renders chat templates in a separate process that can be stopped: see `template_process`."""

import contextlib
import re
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from ladechat.model.checkpoint import template_process
from ladechat.model.checkpoint.template_process import read_message, write_message

HALF_A_CHARACTER = re.compile("[\ud800-\udffe]")
"""Surrogates, which no tokenizer reads. The last one is the guard of `ladechat.model.checkpoint.marks`."""
MOST_SECONDS = 10
"""The processor time for one conversation. A usual one takes a millisecond, the longest accepted one a second."""
MOST_OF_A_REASON = 240
"""The most characters of a template's error that are shown."""
SECONDS_BETWEEN_LOOKS = 0.05
"""The longest delay until a waiting thread notices that its work is abandoned (`ladechat.engine.interruptible`)."""


class TakesTooMuch(TemplateError):
    """A template that takes more time or memory than it may."""


def rendered(source: str, messages: Sequence[dict[str, Any]], *, seconds: int | None = None, **values: Any) -> str:
    """Return the conversation as text, as `tokenizer.apply_chat_template` writes it.

    `seconds` is the processor time that it may take, by default `MOST_SECONDS`; `values` are the template's other
    variables, such as the names of special tokens.

    Raises:
        TakesTooMuch: the process ended because of it.
        TemplateError: the template refuses the conversation, fails, or writes too much.
    """
    seconds = seconds or MOST_SECONDS
    given = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": False, **values}
    answer = _renderer.ask({"template": source, "values": given, "seconds": seconds})
    if answer is None:
        raise TakesTooMuch(f"it takes more than {seconds} s of processor time, or too much memory")
    if "error" in answer:
        raise TemplateError(" ".join(answer["error"].split())[:MOST_OF_A_REASON])
    text = str(answer["text"])
    if HALF_A_CHARACTER.search(text):
        raise TemplateError("it writes half a character")
    return text


class _Renderer:
    """The rendering process, started on first use and again after it ended. It exits when its input is closed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, request: Any) -> Any:
        """Return the answer to a request; None if the process ended because of it.

        Raises:
            TemplateError: no process can be started.
        """
        with self._lock:
            answer = None
            try:
                answer = self._answer(request)
            finally:  # no answer: it ended, or is abandoned, perhaps in the middle of an answer
                if answer is None:
                    self._end()
            return answer

    def _answer(self, request: Any) -> Any:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            write_message(process.stdin, request)
        while not select.select([process.stdout], [], [], SECONDS_BETWEEN_LOOKS)[0]:
            pass  # a thread can be abandoned only between two calls
        with contextlib.suppress(ValueError):  # it ended in the middle of its answer
            return read_message(process.stdout)
        return None

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            packages = {str(Path(str(sys.modules[name].__file__)).parents[1]) for name in ("jinja2", "markupsafe")}
            command = [sys.executable, "-I", "-S", template_process.__file__, *sorted(packages)]
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            except OSError as error:
                raise TemplateError(f"no process can be started for it: {error.strerror or error}") from error
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.communicate()


_renderer = _Renderer()
