"""The program. `python -m ladechat` works too, for which Python puts the working directory first on `sys.path`.

Taken off again, it cannot stand in for torch or another library. `ladechat.py` is looked for there before this file is
read; `ladechat` and `python -P -m ladechat` do not do that.
"""

import sys

try:
    from ladechat.interrupts import INTERRUPTED, ended_by_ctrl_c
except KeyboardInterrupt:
    sys.exit(130)  # as INTERRUPTED, which is not there yet

OPTIMIZED_BEYOND_DOCSTRINGS = 2
"""The `sys.flags.optimize` of -OO and PYTHONOPTIMIZE=2."""


def main() -> None:
    """Run a command. On Windows, where much of what it imports is missing, and in a Python without docstrings, of which
    transformers makes its models and ladechat its help, say what is needed.
    """
    try:
        with ended_by_ctrl_c():
            _check_python()
            from ladechat.cli import main as run
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _check_python() -> None:
    import platform

    if platform.system() == "Windows":
        sys.exit("ladechat: Linux or macOS is needed; on Windows, start it in WSL (wsl --install).")
    if sys.flags.optimize >= OPTIMIZED_BEYOND_DOCSTRINGS:
        sys.exit("ladechat: Python without docstrings will not do; unset PYTHONOPTIMIZE, or start it without -OO.")


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
