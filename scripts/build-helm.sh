#!/usr/bin/env bash
# Builds helm from its Go module into a folder: what HELM_ASSETS names. Usage: build-helm.sh FOLDER
set -euo pipefail
mkdir -p "$1"
GOBIN=$(cd "$1" && pwd) CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" helm.sh/helm/v3/cmd/helm@v3.19.0
