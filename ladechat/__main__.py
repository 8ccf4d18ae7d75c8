"""The program. `python -m ladechat` works too, although Python then puts the working directory first on `sys.path`.

It is removed from there, so that no file in it replaces torch or another library. A `ladechat.py` in the working
directory would be found before this file; `ladechat` and `python -P -m ladechat` do not look there.
"""

import gc
import sys

try:
    from ladechat.interrupts import INTERRUPTED, ended_by_ctrl_c
except KeyboardInterrupt:
    sys.exit(130)  # INTERRUPTED, which could not be imported

OPTIMIZED_BEYOND_DOCSTRINGS = 2
"""The `sys.flags.optimize` of -OO and PYTHONOPTIMIZE=2."""


def main() -> None:
    """Run a command. Report what is needed on Windows, where many imports are missing, and in a Python without
    docstrings, from which transformers builds its models and ladechat its help.
    """
    try:
        with ended_by_ctrl_c():
            _check_python()
            gc.disable()  # what is imported is not garbage
            from ladechat.shell.cli import main as run

            gc.enable()
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
