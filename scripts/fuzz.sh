#!/bin/sh
# Runs every fuzz target for a while, one after the other. A failure leaves its
# input in testdata/fuzz of the package: commit it, it is a test from then on.
set -eu
cd "$(dirname "$0")/.."
time="${1:-30s}"
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "== $pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg"
	done
done
