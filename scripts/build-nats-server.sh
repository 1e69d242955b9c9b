#!/usr/bin/env bash
# Builds nats-server from its Go module into a folder: what NATS_ASSETS names. Usage: build-nats-server.sh FOLDER
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=2.15.2
CGO_ENABLED=0 GOBIN="$out" go install -trimpath -ldflags "-s -w" "github.com/nats-io/nats-server/v2@v$version"
