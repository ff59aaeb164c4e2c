#!/bin/sh
# Installs what some tests need beyond Go: npm packages of the MCP project (public
# server, inspector, conformance suite) into .ci/node, and a Node that runs them.
# It changes nothing outside the repository.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .ci/node
cp scripts/package.json .ci/node/package.json
if [ -f scripts/package-lock.json ]; then cp scripts/package-lock.json .ci/node/package-lock.json; fi
cd .ci/node
if [ ! -f .done ] || ! cmp -s package.json .done; then
	npm install --no-audit --no-fund --loglevel=error
	cp package.json .done
fi
ls node_modules/.bin | head -20
