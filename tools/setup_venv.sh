#!/bin/sh
# Put ladechat and what it needs into a virtual environment, which is made if it is not there. Run from the checkout.
#
#   tools/setup_venv.sh VENV app   what the app needs
#   tools/setup_venv.sh VENV dev   what GIFs, plots, browsers, tests and checks need besides
#
# PYTHON names the interpreter to make it with; otherwise the first of the usual names that is new enough is taken.
# Versions are those of constraints.txt.
set -eu

venv=$1
what=$2

say() { printf 'ladechat: %s\n' "$*" >&2; }
stop() {
    say "$*"
    exit 1
}

find_python() {
    # $PYTHON alone if there is one, whatever its path contains.
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.14; fi
    for candidate in "$@"; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    found=$("$1" -c 'import platform; print("is Python " + platform.python_version())' 2>/dev/null) ||
        found="does not run here"
    stop "Python 3.11 or newer is needed, and $1 $found: install one, or name the one to use, as in" \
        "'make run PYTHON=python3.12'."
}

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python comes without its venv module: install it (Debian and Ubuntu: apt install python3-venv)," \
            "then run the same command again."
    rm -rf "$venv"
    "$python" -m venv "$venv" || stop "The virtual environment $venv could not be made; the lines above say why."
    say "Installing into $venv, once. On Linux this downloads about 2.8 GB (PyTorch with its NVIDIA libraries)."
fi

case $what in
app) target=. ;;
dev) target='.[dev,gif,plot,serve]' ;;
*) stop "What to set up is 'app' or 'dev', not '$what'." ;;
esac

"$venv/bin/python" -m pip install --disable-pip-version-check --constraint constraints.txt --editable "$target" ||
    stop "The installation did not finish; the lines above say why. The same command takes it up again."
