#!/bin/sh
# Install the browser of tests/serve/test_browser.py, where Debian's or Ubuntu's packages are there and we may.
# Its absence is no error: the tests that need it are skipped then, and say so.
set -u

for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
say() { printf 'ladechat: %s\n' "$*" >&2; }
command -v apt-get >/dev/null || { say "No Chromium here, and no apt-get: tests in a browser are skipped." && exit 0; }
as_root=
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
$as_root apt-get update >/dev/null 2>&1
for name in chromium-headless-shell chromium; do
    $as_root apt-get install --yes --no-install-recommends "$name" >/dev/null 2>&1 && exit 0
done
say "Chromium could not be installed: tests in a browser are skipped. 'sudo apt-get install chromium' may bring it."
