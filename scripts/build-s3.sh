#!/usr/bin/env bash
# Builds versitygw, an S3 store, from its Go module into a folder: what S3_ASSETS names. Usage: build-s3.sh FOLDER
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=1.8.0
CGO_ENABLED=0 GOBIN="$out" go install -trimpath -ldflags "-s -w" "github.com/versity/versitygw/cmd/versitygw@v$version"
