"""`python -m ladechat`, for which Python puts the working directory first on `sys.path`.

Taken off again, it cannot stand in for torch or another library. `ladechat.py` is looked for there before this file is
read; `ladechat` and `python -P -m ladechat` do not do that.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from ladechat.cli import main

if __name__ == "__main__":
    main()
