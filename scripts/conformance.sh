#!/bin/sh
# Runs the public MCP conformance suite directly against the Go SDK's fixture and
# through ayegate, and fails when ayegate makes a scenario fail.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup-ci.sh >/dev/null
exec go run ./internal/tools/conformance -ayegate bin/ayegate -suite .ci/node/node_modules/.bin/conformance "$@"
