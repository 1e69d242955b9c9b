#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager and kubectl from their Go module into a folder, beside an etcd found on the machine: what
# KUBEBUILDER_ASSETS names. Usage: build-kube-apiserver.sh FOLDER [VERSION [PROGRAM…]]
# Of another minor version for KUBEBUILDER_ASSETS_FORMER: build-kube-apiserver.sh FOLDER former
set -euo pipefail
out=$1
version=${2:-1.35.4}
programs=("${@:3}")
if [ "$version" = former ]; then
  version=1.34.3
  programs=(kube-apiserver kube-controller-manager) # one kubectl speaks to both
fi
((${#programs[@]})) || programs=(kube-apiserver kube-controller-manager kubectl)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$out"
cd "$work"

mkdir kube-apiserver kube-controller-manager kubectl
cat > kube-apiserver/main.go <<'GO'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
GO
sed s/APIServer/ControllerManager/\;s/apiserver/controller-manager/ kube-apiserver/main.go > kube-controller-manager/main.go
cat > kubectl/main.go <<'GO'
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
GO

# The module's own go.mod replaces its staging modules by folders; a wrapper has to name their released versions instead.
go mod download -json "k8s.io/kubernetes@v$version" > module.json
gomod=$(sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p' module.json)
{
  printf 'module wrapper\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/kubernetes v%s\n\tk8s.io/component-base v0%s\n\tk8s.io/kubectl v0%s\n)\n\nreplace (\n' "$version" "${version#1}" "${version#1}"
  sed -n 's|^\t*\(k8s.io/[a-z0-9-]*\) => ./staging.*|\1|p' "$gomod" | sort -u | while read -r name; do
    printf '\t%s => %s v0%s\n' "$name" "$name" "${version#1}"
  done
  printf ')\n'
} > go.mod
go mod tidy >/dev/null 2>tidy.log || { tail -20 tidy.log; exit 1; }
v=k8s.io/component-base/version
for name in "${programs[@]}"; do
  go build -ldflags "-s -w -X $v.gitVersion=v$version -X $v.gitMajor=1 -X $v.gitMinor=${version:2:2} -X $v.gitTreeState=clean" -o "$out/$name" "./$name"
done
ln -sf "$(command -v etcd)" "$out/etcd"
