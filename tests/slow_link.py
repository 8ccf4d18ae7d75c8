"""A slow link, for tests: passes its input on, so many bytes at a time, with a pause after each.

sh -c "ladechat engine | python -m tests.slow_link 4096 0.01"
"""

import os
import sys
import time


def main(size: int, seconds: float) -> None:
    while part := os.read(0, size):
        os.write(1, part)
        time.sleep(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
