#!/usr/bin/env bash
# Gathers the kinds of others that our manifests use (Route, Gateway API, cert-manager, Prometheus operator) as their CRD files, from
# the Go modules that publish them, into a folder: what CRD_ASSETS names. Usage: fetch-crds.sh FOLDER
set -euo pipefail
out=$1
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

folder() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'; }

openshift=$(folder github.com/openshift/api@v0.0.0-20240527133614-ba11c1587003)
gateway=$(folder sigs.k8s.io/gateway-api@v1.5.1)
certificates=$(folder github.com/cert-manager/cert-manager@v1.21.2)
prometheus=$(folder github.com/prometheus-operator/prometheus-operator@v0.85.0)
install -m 0644 \
  "$openshift/route/v1/zz_generated.crd-manifests/routes-Default.crd.yaml" \
  "$gateway/config/crd/standard/gateway.networking.k8s.io_gateways.yaml" \
  "$gateway/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml" \
  "$gateway/config/crd/standard/gateway.networking.k8s.io_tlsroutes.yaml" \
  "$certificates/deploy/crds/cert-manager.io_certificates.yaml" \
  "$certificates/deploy/crds/cert-manager.io_issuers.yaml" \
  "$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml" \
  "$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml" \
  "$out/"
