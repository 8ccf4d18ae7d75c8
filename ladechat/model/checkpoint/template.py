"""Renders chat templates, in a process of their own that can be stopped: see `template_process`."""

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
"""What no tokenizer reads. The last such half is the guard of `ladechat.model.checkpoint.marks`."""
MOST_SECONDS = 10
"""Processor time of one conversation. A usual one takes a millisecond, the longest that is read a second."""
MOST_OF_A_REASON = 240
"""Characters of what a template says of itself."""
SECONDS_BETWEEN_LOOKS = 0.05
"""How late a thread that waits notices that its work is given up (`ladechat.engine.interruptible`)."""


class TakesTooMuch(TemplateError):
    """A template that takes more time or memory than it may."""


def rendered(source: str, messages: Sequence[dict[str, Any]], *, seconds: int | None = None, **values: Any) -> str:
    """Return the conversation as text, as `tokenizer.apply_chat_template` writes it.

    Args:
        source: the template.
        messages: role and content of each.
        seconds: of processor time that it may take, if not `MOST_SECONDS`.
        values: other variables of the template, such as the names of special tokens.

    Raises:
        TakesTooMuch: the process was ended over it.
        TemplateError: the template refuses the conversation, fails, or makes too much of it.
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
    """The process, started when it is first needed and again after it was ended. It ends with its input, as we do."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, request: Any) -> Any:
        """Return the answer to a request; None if the process ended over it.

        Raises:
            TemplateError: no process can be started.
        """
        with self._lock:
            try:
                answer = self._answer(request)
            except BaseException:  # given up, perhaps in the middle of it
                self._end()
                raise
            if answer is None:
                self._end()
            return answer

    def _answer(self, request: Any) -> Any:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            write_message(process.stdin, request)
        while not select.select([process.stdout], [], [], SECONDS_BETWEEN_LOOKS)[0]:
            pass  # a thread can be given up only between two calls
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
