#!/bin/sh
# Installs sessions @VERSION@ into ~/.local/bin, or into DIR/bin with --prefix DIR. Needs no root.
#
#   sh install.sh [--prefix DIR] [--from ADDRESS|CLONE]
#
# The archive comes from the release's page, or from ADDRESS (file:// is possible). It is installed
# only if its SHA-256 is the one below. If there is no release for this system, or CLONE is named, the
# program is built in a clone of the sources: CLONE, the current folder, or the one that has this file.
set -eu

version="@VERSION@"
from="@FROM@"
prefix="${HOME:-}/.local"
usage="usage: install.sh [--prefix DIR] [--from ADDRESS|CLONE]"

fail() {
    printf 'error: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
        --prefix | --from)
            [ $# -gt 1 ] || fail "$1 needs a value"
            if [ "$1" = --prefix ]; then prefix="$2"; else from="${2%/}"; fi
            shift 2
            ;;
        -h | --help)
            echo "$usage"
            exit 0
            ;;
        *) fail "unknown argument '$1'" "$usage" ;;
    esac
done
[ "$prefix" != /.local ] || fail "HOME is not set" "give --prefix DIR"
case "$prefix" in
    /*) ;;
    *) prefix="$PWD/$prefix" ;;
esac

is_clone() { [ -f "$1/xtask/src/dist/files/install.sh" ]; }

# Builds the program in a clone, and installs it.
build_in() {
    for program in cargo cc; do
        command -v "$program" >/dev/null 2>&1 ||
            fail "building sessions needs $program, which is not installed" \
                "install Rust 1.95 or newer (rustup) and a C compiler, then run this again"
    done
    printf 'building sessions in %s: this takes minutes\n' "$1"
    cd "$1"
    exec cargo xtask install --prefix "$prefix"
}

is_clone "$from" && build_in "$from"

system="$(uname -s) on $(uname -m)"
case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-gnu ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    *) target="" ;;
esac

wanted=""
case "$target" in
# @SUMS@
esac
if [ -z "$wanted" ]; then
    printf 'there is no release of sessions for %s\n' "$system" >&2
    for folder in . "$(dirname "$0")/../../../.."; do
        is_clone "$folder" && build_in "$folder"
    done
    fail "there is no clone to build in either" "give a clone of the sources: --from CLONE"
fi

name="sessions-mcp-$version-$target"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

archive="$scratch/$name.tar.gz"
address="$from/$name.tar.gz"
case "$address" in
    file://*) cp "${address#file://}" "$archive" || fail "cannot read $address" ;;
    *)
        if command -v curl >/dev/null 2>&1; then
            curl --fail --location --silent --show-error --output "$archive" "$address"
        elif command -v wget >/dev/null 2>&1; then
            wget --quiet --output-document="$archive" "$address"
        else
            fail "neither curl nor wget is installed" "install one of them"
        fi || fail "cannot download $address" "check the network, or give --from ADDRESS"
        ;;
esac

if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum "$archive")
else
    found=$(shasum -a 256 "$archive")
fi
found=${found%% *}
[ "$found" = "$wanted" ] ||
    fail "the SHA-256 of $address is $found, not $wanted" "nothing was installed; download it again"

tar -xzf "$archive" -C "$scratch"
mkdir -p "$prefix/bin"
# A program that runs keeps its file: the new one is put in its place in one step.
cp "$scratch/$name/sessions" "$prefix/bin/.sessions-new-$$"
chmod 755 "$prefix/bin/.sessions-new-$$"
mv -f "$prefix/bin/.sessions-new-$$" "$prefix/bin/sessions"

"$prefix/bin/sessions" --version >/dev/null || fail "$prefix/bin/sessions does not run here"
printf 'installed %s\n' "$prefix/bin/sessions"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) printf '%s is not on PATH\n' "$prefix/bin" ;;
esac
