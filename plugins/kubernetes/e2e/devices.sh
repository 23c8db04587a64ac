#!/usr/bin/env bash
# devices.sh ROOT: a tree that looks like sysfs, debugfs and /dev of a machine with QAT (Gen 4, two functions; and Gen 2), IAA, DSA
# and DLB, for `HASTEN_SYSFS_ROOT=ROOT hasten check`. It is a simulation: no such device is needed, and none does anything.
set -euo pipefail
root=$1

# put FILE TEXT
put() { mkdir -p "$(dirname "$root/$1")" && printf '%s\n' "$2" >"$root/$1"; }
link() { mkdir -p "$(dirname "$root/$2")" && ln -sfn "$1" "$root/$2"; }

# function ADDRESS DEVICE DRIVER NUMA
function_() {
    local path=sys/bus/pci/devices/$1
    put "$path/vendor" 0x8086
    put "$path/device" "$2"
    put "$path/numa_node" "$4"
    [[ $3 == - ]] || link "../../drivers/$3" "$path/driver"
}

# virtual ADDRESS DEVICE PHYSICAL GROUP NUMA
virtual() {
    function_ "$1" "$2" vfio-pci "$5"
    link "../$3" "sys/bus/pci/devices/$1/physfn"
    link "../../../kernel/iommu_groups/$4" "sys/bus/pci/devices/$1/iommu_group"
    put "dev/vfio/$4" ''
}

put dev/vfio/vfio ''
for unit in "6b 0 asym" "e8 1 dc"; do
    read -r bus numa services <<<"$unit"
    function_ "0000:$bus:00.0" 0x4940 4xxx "$numa"
    put "sys/bus/pci/devices/0000:$bus:00.0/qat/state" up
    put "sys/bus/pci/devices/0000:$bus:00.0/qat/cfg_services" "$services"
    put "sys/kernel/debug/qat_4xxx_0000:$bus:00.0/heartbeat/status" 0
    put "sys/kernel/debug/qat_4xxx_0000:$bus:00.0/version/fw" 4.19.0
    for number in 1 2; do virtual "0000:$bus:00.$number" 0x4941 "0000:$bus:00.0" "$((16#$bus + number))" "$numa"; done
done
function_ 0000:3d:00.0 0x37c8 c6xx 0
put sys/bus/pci/devices/0000:3d:00.0/qat/state up
# Both in one IOMMU group: whoever has one has the other.
virtual 0000:3d:01.0 0x37c9 0000:3d:00.0 77 0
virtual 0000:3d:01.1 0x37c9 0000:3d:00.0 77 0

# unit KIND ADDRESS DEVICE NUMBER NUMA
unit() {
    local path=sys/bus/pci/devices/$2/$1$4
    function_ "$2" "$3" idxd "$5"
    put "$path/state" enabled
    put "$path/pasid_enabled" 1
    put "$path/group$4.0/name" group
    put "$path/engine$4.0/group_id" 0
}

# queue KIND ADDRESS NUMBER MODE INDEX
queue() {
    local path=sys/bus/pci/devices/$2/$1$3/wq$3.$5
    put "$path/state" enabled
    put "$path/mode" "$4"
    put "$path/type" user
    put "$path/driver_name" user
    put "$path/group_id" 0
    put "$path/size" 32
    put "dev/$1/wq$3.$5" ''
}
unit iax 0000:6e:00.0 0x0cfe 1 0
queue iax 0000:6e:00.0 1 shared 0
queue iax 0000:6e:00.0 1 dedicated 1
unit dsa 0000:6a:00.0 0x0b25 0 0
queue dsa 0000:6a:00.0 0 shared 0
# Not enabled, so not offered.
queue dsa 0000:6a:00.0 0 shared 1
put sys/bus/pci/devices/0000:6a:00.0/dsa0/wq0.1/state disabled

function_ 0000:6d:00.0 0x2710 dlb2 0
put sys/bus/pci/devices/0000:6d:00.0/dlb2/dlb0/name dlb0
put dev/dlb0 ''
