#!/bin/sh
# Put ladechat and what it needs into a virtual environment. Run from the checkout.
#
#   tools/setup_venv.sh VENV app   what the app needs
#   tools/setup_venv.sh VENV dev   what GIFs, plots, browsers, tests and checks need in addition
#
# The environment is made if it is not there, and made anew if it cannot be used: by another PYTHON than the one that is
# named, for a checkout that was elsewhere, or with a Python that has gone or that the packages are not made for. Where
# all is installed, and no list of packages is newer, nothing happens.
#
# PYTHON names the interpreter to make it with; otherwise the first of the usual names that fits is taken.
# Versions are those of constraints.txt.
set -eu

venv=$1
what=$2

# pip would put the packages elsewhere, or run another Python. `-I` below stands for the variables of Python itself.
export PIP_USER=0
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON

say() { printf 'ladechat: %s\n' "$*" >&2; }
stop() {
    say "$*"
    exit 1
}

find_python() {
    # $PYTHON alone if there is one, whatever its path contains.
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.13 python3.12 python3.11 python3.14 python
    fi
    for candidate in "$@"; do
        if "$candidate" -I tools/installable.py >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    reason=$("$1" -I tools/installable.py 2>/dev/null) && reason=
    stop "ladechat cannot be installed with $1: ${reason:-that is no Python that runs here. Install Python 3.11 to \
3.14, or name the one to use, as in 'make run PYTHON=python3.12'.}"
}

# The environment has a Python of its own that fits, and pip; and if ladechat was installed, it is that of this checkout.
usable() {
    "$venv/bin/python" -I tools/installable.py && "$venv/bin/python" -I -c '
import os, pip, sys
from importlib.util import find_spec
found = find_spec("ladechat")
here = found is not None and os.path.samefile(found.origin, "ladechat/__init__.py")
sys.exit(os.path.exists(sys.argv[1]) and not here)' "$venv/app.stamp"
} >/dev/null 2>&1

made_with() { [ "$(identity "$venv/bin/python")" = "$(identity "$1")" ]; }
identity() { "$1" -I -c 'import sys; print(sys.version, sys.base_prefix)' 2>/dev/null; }

up_to_date() { [ -e "$1" ] && [ -z "$(find pyproject.toml constraints.txt tools/setup_venv.sh -newer "$1")" ]; }

case $what in
app) target=. ;;
dev) target='.[dev,gif,plot,serve]' ;;
*) stop "What to set up is 'app' or 'dev', not '$what'." ;;
esac

python=
if [ -n "${PYTHON:-}" ]; then python=$(find_python); fi
if ! usable || { [ -n "$python" ] && ! made_with "$python"; }; then
    [ -n "$python" ] || python=$(find_python)
    [ ! -e "$venv" ] || [ -e "$venv/pyvenv.cfg" ] || stop "$venv is no virtual environment: move it away, or name" \
        "another folder, as in 'make run VENV=other'."
    "$python" -I -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python comes without its venv module: install it (Debian and Ubuntu: apt install python3-venv)," \
            "then run the same command again."
    rm -rf "$venv"
    "$python" -I -m venv "$venv" || stop "The virtual environment $venv could not be made; the lines above say why."
    say "Installing into $venv, once. On Linux this downloads about 2.8 GB (PyTorch with its NVIDIA libraries)."
elif up_to_date "$venv/$what.stamp"; then
    exit 0
fi

"$venv/bin/python" -I -m pip install --disable-pip-version-check --constraint constraints.txt --editable "$target" ||
    stop "The installation did not finish; the lines above say why. The same command takes it up again."
touch "$venv/app.stamp" "$venv/$what.stamp"
