#!/usr/bin/env bash
# e2e-kubernetes.sh TARGET: the chart on a real control plane (etcd, API server, controllers, scheduler), and its image on a real
# node (kubelet, containerd, runc). What is Go is built from its modules, once, into .deps/kubernetes (minutes).
source "$(dirname "$0")/lib.sh"

target=$(realpath -m "$1")
programs=$root/.deps/kubernetes
image=$target/images/hasten.tar

# build FOLDER PACKAGE NAME [VERSION]: what is pinned by go.sum, and built again if that changes.
build() {
    local stamp=$programs/$3.sum version=${4:-}
    if [[ ! -x $programs/$3 ]] || ! cmp -s "$1/go.sum" "$stamp"; then
        say "Building $3"
        (cd "$1" && "$root/scripts/go.sh" build -ldflags="-s -w ${version:+-X k8s.io/component-base/version.gitVersion=$version}" -o "$programs/$3" "$2")
        cp "$1/go.sum" "$stamp"
    fi
}

# kinds FOLDER: definitions of kinds of other projects, from their modules, which packaging/requirements/crds.txt pins.
kinds() {
    local module version hash answer folder file
    rm -rf "$1" && mkdir -p "$1"
    while read -r module version hash; do
        answer=$(cd / && "$root/scripts/go.sh" mod download -json "$module@$version") || die "cannot fetch $module: check the network, or set GOPROXY"
        [[ $answer == *"\"$hash\""* ]] || die "the module proxy serves another $module than packaging/requirements/crds.txt pins: do not use it"
        folder=$(sed -n 's/.*"Dir": "\(.*\)",$/\1/p' <<<"$answer")
        case $module in
        */cert-manager) cp "$folder"/deploy/crds/cert-manager.io_*.yaml "$1" ;;
        sigs.k8s.io/*) cp "$folder"/config/crd/standard/gateway.*.yaml "$1" ;;
        istio.io/*) cp "$folder"/kubernetes/customresourcedefinitions.gen.yaml "$1/istio.yaml" ;;
        # Without the lines by which Helm leaves them out.
        */gateway) for file in "$folder"/charts/gateway-crds-helm/templates/generated/*.yaml; do sed '/^{{-/d' "$file" >"$1/${file##*/}"; done ;;
        esac
    done < <(grep -v '^#' packaging/requirements/crds.txt)
    chmod -R u+w "$1"
}

[[ -f $image ]] || die "no image: run \`make images\` first"
scripts/musl-image.sh
mkdir -p "$programs"
build plugins/kubernetes/e2e/cluster ./cmd/etcd etcd
for part in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
    build plugins/kubernetes/e2e/cluster "./cmd/$part" "$part" v1.36.3
done
for part in containerd containerd-shim-runc-v2 ctr; do
    build plugins/kubernetes/e2e/runtime "github.com/containerd/containerd/v2/cmd/$part" "$part"
done
build plugins/kubernetes/e2e/clients ./cmd/kubectl kubectl v1.36.3
build plugins/kubernetes/e2e/clients helm.sh/helm/v3/cmd/helm helm
kinds "$programs/kinds"
cd plugins/kubernetes
for part in ./cmd/hasten-k8s ./e2e/pause; do "$root/scripts/go.sh" build -o "$programs/" "$part"; done
"$root/scripts/go.sh" test -vet=off -tags e2e -c -o "$programs/e2e" ./e2e
folders='/var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/containerd /run/cdi /run/hasten-e2e'
# All that is left of it: the kubelet's control groups, and folders that something was mounted on.
clean() {
    find /sys/fs/cgroup -depth -type d -path '*/hasten-e2e*' -exec rmdir {} + 2>/dev/null || true
    # shellcheck disable=SC2086 # a list; those of somebody else are not empty
    rmdir $folders 2>/dev/null || true
}
trap clean EXIT
# Network, processes and mounts of its own: nothing of it reaches this machine, and all of it ends with the first process.
# 10.0.0.1 is where pods look for the API server.
# shellcheck disable=SC2016 # expanded inside
as_root unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private \
    env "PATH=$PATH" HASTEN_E2E_NAMESPACES=1 "HASTEN_E2E_PROGRAMS=$programs" "HASTEN_E2E_IMAGE=$image" "HASTEN_E2E_FOLDERS=$folders" \
    "HASTEN_E2E_MUSL=$root/.deps/musl-image" "HASTEN_E2E_SCALE=${HASTEN_E2E_SCALE:-}" "HASTEN_E2E_REPORT=$root/docs/results" "HASTEN_E2E_ROOT=$root" "HASTEN_E2E_HASTEN=$target/release/hasten" bash -euc '
        ip link set lo up
        ip address add 10.0.0.1/32 dev lo
        for folder in $HASTEN_E2E_FOLDERS; do mkdir -p "$folder" && mount -t tmpfs tmpfs "$folder"; done
        cd e2e
        ./devices.sh /run/hasten-e2e/tree
        ./dev.sh /run/hasten-e2e/tree
        exec "$HASTEN_E2E_PROGRAMS/e2e" -test.v -test.timeout 30m "$@"' e2e "${@:2}"
