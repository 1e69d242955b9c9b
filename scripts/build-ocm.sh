#!/usr/bin/env bash
# Builds the registration agent of Open Cluster Management from its Go module into a folder, beside the definitions of its kinds (crds/):
# what OCM_ASSETS names. Takes long: it compiles a Kubernetes client whole. Usage: build-ocm.sh FOLDER
set -euo pipefail
mkdir -p "$1/crds"
out=$(cd "$1" && pwd)
version=1.2.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

folder() { (cd "$work" && go mod download -json "open-cluster-management.io/$1@v$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'); }

api=$(folder api)
# What has the name of an older file takes its place: it has the older versions too.
for file in "$api"/{cluster,addon,work,operator}/v*/*.crd.yaml; do install -m 0644 "$file" "$out/crds/"; done

# From the module's own sources and sums: `go install module@version` asks for a list of all versions too, which not every proxy gives.
cp -r "$(folder ocm)" "$work/ocm"
chmod -R u+w "$work/ocm"
cd "$work/ocm"
CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w" -o "$out/registration" ./cmd/registration
