#!/usr/bin/env bash
# e2e-kubernetes.sh: the chart and the webhook on a real control plane (etcd, API server, controllers, scheduler), which is
# built from its Go modules, once, into .deps/kubernetes (minutes).
source "$(dirname "$0")/lib.sh"

programs=$root/.deps/kubernetes

# build FOLDER PACKAGE NAME [VERSION]: what is pinned by go.sum, and built again if that changes.
build() {
    local stamp=$programs/$3.sum version=${4:-}
    if [[ ! -x $programs/$3 ]] || ! cmp -s "$1/go.sum" "$stamp"; then
        say "Building $3"
        (cd "$1" && "$root/scripts/go.sh" build -ldflags="-s -w ${version:+-X k8s.io/component-base/version.gitVersion=$version}" -o "$programs/$3" "$2")
        cp "$1/go.sum" "$stamp"
    fi
}

mkdir -p "$programs"
build plugins/kubernetes/e2e/cluster ./cmd/etcd etcd
for part in kube-apiserver kube-controller-manager kube-scheduler; do
    build plugins/kubernetes/e2e/cluster "./cmd/$part" "$part" v1.36.3
done
(cd plugins/kubernetes && "$root/scripts/go.sh" build -o "$programs/hasten-k8s" ./cmd/hasten-k8s)
export HASTEN_E2E_PROGRAMS=$programs HASTEN_E2E_CHART=$root/packaging/kubernetes/chart
cd plugins/kubernetes
"$root/scripts/go.sh" test -tags e2e -count 1 -v -timeout 20m ./e2e
