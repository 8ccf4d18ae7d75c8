"""The program. `python -m ladechat` works too, for which Python puts the working directory first on `sys.path`.

Taken off again, it cannot stand in for torch or another library. `ladechat.py` is looked for there before this file is
read; `ladechat` and `python -P -m ladechat` do not do that.
"""

import platform
import sys


def main() -> None:
    """Run a command. On Windows, where much of what it imports is missing, say what is needed."""
    if platform.system() == "Windows":
        sys.exit("ladechat: Linux or macOS is needed; on Windows, start it in WSL (wsl --install).")
    from ladechat.cli import main as run

    run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
