"""The program of the process that renders chat templates. It imports only jinja2 and the standard library.

A template is a program that comes with a checkpoint. Jinja's sandbox denies it files and processes, but does not limit
its time and memory, and a Python thread cannot be stopped in the middle of `9**9**9`. A process can: the system ends it
at its limits, and the engine ends it on a stop.
"""

import contextlib
import io
import json
import resource
import sys
from datetime import datetime
from functools import lru_cache
from typing import IO, Any

MOST_BYTES = 600_000_000
"""The most memory of the process. Eight million emoji, the longest accepted conversation, take half of it."""
MOST_CHARACTERS = 16_000_000
"""The most characters of a rendered conversation: four times those of a context of a million tokens."""


def read_message(pipe: IO[bytes]) -> Any:
    """Read the next message: its length in a line, then JSON. Return None at the end of the pipe."""
    length = pipe.readline()
    return json.loads(pipe.read(int(length))) if length.strip() else None


def write_message(pipe: IO[bytes], message: Any) -> None:
    """Write one message, including lone surrogates."""
    content = json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass")
    pipe.write(b"%d\n%s" % (len(content), content))
    pipe.flush()


def _serve() -> None:
    """Answer each `{"template", "values", "seconds"}` with `{"text"}` or `{"error"}`, until the input ends."""
    _set_limit(resource.RLIMIT_AS, MOST_BYTES)
    while (request := read_message(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _set_limit(resource.RLIMIT_CPU, round(used.ru_utime + used.ru_stime) + request["seconds"])
        try:
            answer = {"text": _text(_compiled(request["template"]), request["values"])}
        except MemoryError:
            answer = {"error": "it takes too much memory"}
        except Exception as error:  # whatever a template provokes
            answer = {"error": str(error) or type(error).__name__}
        write_message(sys.stdout.buffer, answer)


def _set_limit(what: int, most: int) -> None:
    """Lower a limit of this process, where the system supports it."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@lru_cache(maxsize=8)
def _compiled(source: str) -> Any:
    """Compile a template as transformers does: with the same settings, filters, functions and tags."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag `{% generation %}`, which marks the model's text; it has no effect on a prompt."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    def raise_exception(message: object = "it refuses it") -> None:
        raise TemplateError(str(message))

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    extensions = [Generation, loopcontrols]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def _text(template: Any, values: dict[str, Any]) -> str:
    """Render the template, unless the text gets too long."""
    text = io.StringIO()
    for part in template.generate(values):
        text.write(part)
        if text.tell() > MOST_CHARACTERS:
            raise ValueError(f"it makes a text of more than {MOST_CHARACTERS:,} characters")
    return text.getvalue()


if __name__ == "__main__":
    sys.path += sys.argv[1:]  # the folder of jinja2: the process starts without any packages
    _serve()
