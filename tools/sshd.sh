#!/bin/sh
# Install the server of tests/session/test_over_ssh.py, where Debian's or Ubuntu's packages are there and we may.
# Its absence is no error: the tests that need it are skipped then, and say so.
set -u

PATH=$PATH:/usr/sbin
command -v sshd >/dev/null && command -v ssh >/dev/null && exit 0
say() { printf 'ladechat: %s\n' "$*" >&2; }
by_hand="tests over ssh are skipped. 'sudo apt-get install openssh-server openssh-client' brings it."
# Under systemd the package starts a server that listens to everybody: not for a test.
[ -d /run/systemd/system ] && say "No sshd here: $by_hand" && exit 0
command -v apt-get >/dev/null || { say "No sshd here, and no apt-get: tests over ssh are skipped." && exit 0; }
as_root=
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
$as_root apt-get update >/dev/null 2>&1
$as_root apt-get install --yes --no-install-recommends openssh-server openssh-client >/dev/null 2>&1 && exit 0
say "sshd could not be installed: $by_hand"
