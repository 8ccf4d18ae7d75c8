"""`python -m ladechat`."""

from ladechat.cli import main

if __name__ == "__main__":
    main()
