#!/usr/bin/env bash
# Builds oauth2-proxy and Dex, which people sign in through in test/journeys/sign-in.test.ts, from their Go modules into a folder: what
# SIGN_IN_ASSETS names. Dex needs a C compiler. Usage: build-sign-in.sh FOLDER
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# `go install` asks for all versions of a module, or refuses its go.mod; in a copy of the module that go.mod is the main one.
copy() {
  local dir
  dir=$(cd "$work" && go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  cp -r "$dir" "$work/$3"
  chmod -R u+w "$work/$3"
  cd "$work/$3"
}

# As in deploy/components/trusted-proxy.
proxy=7.15.3
copy github.com/oauth2-proxy/oauth2-proxy/v7 "v$proxy" proxy
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/oauth2-proxy/oauth2-proxy/v7/pkg/version.VERSION=v$proxy" -o "$out/oauth2-proxy" .

# Dex 2.41.1. Its API is a module of its own, which a downloaded module does not hold.
copy github.com/dexidp/dex v0.0.0-20240807174518-43956db7fd75 dex
go mod edit -dropreplace github.com/dexidp/dex/api/v2 -require github.com/dexidp/dex/api/v2@v2.2.0
CGO_ENABLED=1 go build -mod=mod -trimpath -ldflags "-s -w -X main.version=2.41.1" -o "$out/dex" ./cmd/dex
