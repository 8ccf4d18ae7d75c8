"""The program. `python -m ladechat` works too, for which Python puts the working directory first on `sys.path`.

Taken off again, it cannot stand in for torch or another library. `ladechat.py` is looked for there before this file is
read; `ladechat` and `python -P -m ladechat` do not do that.
"""

import os
import platform
import signal
import sys

INTERRUPTED = 130
"""The exit code after Ctrl+C."""
OPTIMIZED_BEYOND_DOCSTRINGS = 2
"""The `sys.flags.optimize` of -OO and PYTHONOPTIMIZE=2."""


def main() -> None:
    """Run a command. On Windows, where much of what it imports is missing, and in a Python without docstrings, of which
    transformers makes its models and ladechat its help, say what is needed.
    """
    if platform.system() == "Windows":
        sys.exit("ladechat: Linux or macOS is needed; on Windows, start it in WSL (wsl --install).")
    if sys.flags.optimize >= OPTIMIZED_BEYOND_DOCSTRINGS:
        sys.exit("ladechat: Python without docstrings will not do; unset PYTHONOPTIMIZE, or start it without -OO.")
    ends = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where the shell has it ignored
    if ends:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # imports raise anything if they are interrupted
    from ladechat.cli import main as run

    if ends:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
