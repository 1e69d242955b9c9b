#!/usr/bin/env bash
# Builds Prometheus' promtool from its Go module into a folder: what PROMTOOL_ASSETS names. Usage: build-promtool.sh FOLDER
set -euo pipefail
out=$1
version=0.307.0 # of the Go module: Prometheus 3.7.0
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$out"

# `go install` refuses a module whose go.mod excludes versions; in a copy of the module that go.mod is the main one.
source=$(cd "$work" && go mod download -json "github.com/prometheus/prometheus@v$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
cp -r "$source/." "$work"
chmod -R u+w "$work"
cd "$work"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/prometheus/common/version.Version=3.7.0" -o "$out/promtool" ./cmd/promtool
