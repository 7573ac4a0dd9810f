#!/usr/bin/env bash
# Install from Debian's packages the real parts that the tests and checks need, where they are missing.
#
# A package's install may start a service; while this script installs, a policy file forbids that, so no server is left
# running and one that ran before is not touched. Where it may not install, it says in one sentence what to do by hand.
set -euo pipefail

# package              what it brings: a command, or a file by its whole path
parts="
redis-server           redis-server
lua-check              luacheck
curl                   curl
bubblewrap             bwrap
default-jre-headless   java
zookeeper              /usr/share/java/zookeeper.jar
"

is_here() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null ;;
    esac
}

missing=()
while read -r package brings; do
    [ -z "$package" ] || is_here "$brings" || missing+=("$package")
done <<<"$parts"
[ ${#missing[@]} -eq 0 ] && exit 0

by_hand() {
    echo "Missing: ${missing[*]}. $1; install by hand: apt-get install ${missing[*]} (or your system's like)." >&2
    exit 1
}

command -v apt-get >/dev/null || by_hand "There is no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || by_hand "Installing needs root, and sudo asks for a password or is not there"
    as_root=(sudo -n)
fi

# Debian asks this file before it starts a service; 101 means no. One that is there already is the machine's own and may
# say yes; what came with a package that was missing a moment ago is then stopped after the install.
policy=/usr/sbin/policy-rc.d
policy_is_ours=
if [ ! -e "$policy" ]; then
    policy_is_ours=yes
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi

echo "Installing ${missing[*]}"
log=$(mktemp)
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends \
        "${missing[@]}" >"$log" 2>&1 </dev/null
}
# The package lists may be missing or old; only then is it worth the time to get them.
if ! install && ! { "${as_root[@]}" apt-get update --quiet >"$log" 2>&1 && install; }; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    by_hand "apt-get could not install them (see above)"
fi
rm -f "$log"
if [ -z "$policy_is_ours" ]; then
    for package in "${missing[@]}"; do
        [ ! -e "/etc/init.d/$package" ] || "${as_root[@]}" service "$package" stop >/dev/null 2>&1 || true
    done
fi
