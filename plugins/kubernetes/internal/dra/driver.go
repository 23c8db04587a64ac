// Package dra offers the devices of a node by Dynamic Resource Allocation: as ResourceSlices with attributes, which claims choose by
// expressions, and to containers by CDI. What a node has is what `hasten check --json` says, as for the device plugin.
package dra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/cdi"
	"hasten.dev/kubernetes/internal/devices"
)

// Name of the driver, and the domain of its attributes.
const Name = "devices.hasten.dev"

// Taint of a device that is sick; its value is a word for why.
const Taint = Name + "/sick"

// cdiKind is the kind of the CDI devices that containers get.
const cdiKind = "hasten.dev/claim"

// Driver of one node.
type Driver struct {
	health.UnimplementedDRAResourceHealthServer

	// Node is the pool's name, too.
	Node string
	// Facts asks for the devices of this node.
	Facts   func(context.Context) ([]devices.Facts, error)
	Options devices.Options
	// CDI is the folder that the runtime reads.
	CDI   string
	Every time.Duration
	// Effect of the taint of a device that is sick: NoSchedule, or NoExecute to evict who has it.
	Effect resourceapi.DeviceTaintEffect

	lock  sync.Mutex
	known map[string]device
	// seen is when the facts were read last, and changed is closed when they are others, or are as good as new.
	seen    time.Time
	changed chan struct{}
	// untainted says that this API server knows no taints, so that what is sick is not published.
	untainted bool
	// stale says that what was published is to be published again.
	stale bool
}

type device struct {
	devices.Device
	about resourceapi.Device
}

// Run publishes what there is until the context ends.
func (d *Driver) Run(ctx context.Context, publish func(context.Context, resourceslice.DriverResources) error) error {
	tick := time.NewTicker(d.Every)
	defer tick.Stop()
	for {
		if changed, err := d.look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the devices of this node cannot be read: what was published stays so")
		} else if changed {
			if err := publish(ctx, d.resources()); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (d *Driver) look(ctx context.Context) (changed bool, err error) {
	facts, err := d.Facts(ctx)
	if err != nil {
		return false, err
	}
	known := map[string]device{}
	// A shared queue is one device here, with shares as its capacity.
	for kind, offered := range devices.Offers(facts, devices.Options{Share: 1}) {
		for _, one := range offered {
			about := describe(kind, one, facts)
			if strings.HasSuffix(kind, "-shared") {
				share(&about, int64(d.Options.Share))
			}
			if one.Sick != "" {
				about.Taints = []resourceapi.DeviceTaint{{Key: Taint, Value: one.Code, Effect: cmp.Or(d.Effect, resourceapi.DeviceTaintEffectNoSchedule)}}
			}
			known[about.Name] = device{one, about}
		}
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	changed = d.stale || d.known == nil || !reflect.DeepEqual(d.known, known)
	d.known, d.seen, d.stale = known, time.Now(), false
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
	return changed, nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// describe is a device as claims see it.
func describe(name string, one devices.Device, facts []devices.Facts) resourceapi.Device {
	kind, service, _ := strings.Cut(name, ".intel.com/")
	text := func(value string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{StringValue: &value}
	}
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": text(kind), "address": text(one.Address), "unit": text(one.Unit)}
	switch kind {
	case "qat":
		attributes["services"] = text(service)
		if one.Firmware != "" {
			attributes["firmware"] = text(one.Firmware)
		}
	case "iaa", "dsa":
		attributes["mode"] = text(strings.TrimPrefix(service, "wq-user-"))
	case "dlb":
		attributes["function"] = text(service)
	}
	if one.NUMA != nil {
		attributes["numaNode"] = resourceapi.DeviceAttribute{IntValue: one.NUMA}
	}
	if one.Entries != nil {
		entries := int64(*one.Entries)
		attributes["entries"] = resourceapi.DeviceAttribute{IntValue: &entries}
	}
	for _, fact := range facts {
		if fact.Address == one.Address {
			attributes["model"] = text(fact.Model)
		}
	}
	id := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(kind+"-"+one.ID), "-"), "-")
	return resourceapi.Device{Name: id, Attributes: attributes}
}

// share lets a device be had by so many requests, unless one asks for more than a share.
func share(about *resourceapi.Device, count int64) {
	yes, one, all := true, resource.MustParse("1"), *resource.NewQuantity(count, resource.DecimalSI)
	about.AllowMultipleAllocations = &yes
	about.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"shares": {Value: all,
		RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: &one, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &one, Step: &one}}}}
}

// resources are what is published. A device that is sick has a taint: a pod keeps it, and nobody else gets it.
func (d *Driver) resources() resourceslice.DriverResources {
	d.lock.Lock()
	defer d.lock.Unlock()
	var names []string
	for name := range d.known {
		names = append(names, name)
	}
	var slice resourceslice.Slice
	for _, name := range slices.Sorted(slices.Values(names)) {
		if one := d.known[name]; one.Sick == "" || !d.untainted {
			slice.Devices = append(slice.Devices, one.about)
		}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.Node: {Slices: []resourceslice.Slice{slice}}}}
}

// HandleError implements kubeletplugin.DRAPlugin. An API server that drops taints would give away what is sick.
func (d *Driver) HandleError(ctx context.Context, err error, message string) {
	log.FromContext(ctx).Error(err, message)
	var dropped *resourceslice.DroppedFieldsError
	if !errors.As(err, &dropped) || !slices.Contains(dropped.DisabledFeatures(), "DRADeviceTaints") {
		return
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	d.stale = d.stale || !d.untainted
	d.untainted = true
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *Driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		given, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: given, Err: err}
	}
	return results, nil
}

func (d *Driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("the claim %s/%s is not allocated", claim.Namespace, claim.Name)
	}
	// The kubelet asks again after its restart, and ours. What a container has, it keeps, whatever has become of the device.
	_, err := os.Stat(d.file(claim.UID))
	prepared := err == nil
	var given []kubeletplugin.Device
	var spec []cdi.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != Name || result.Pool != d.Node {
			continue
		}
		name := string(claim.UID) + "-" + result.Device
		if result.ShareID != nil {
			name += "-" + string(*result.ShareID)
		}
		given = append(given, kubeletplugin.Device{Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device, ShareID: result.ShareID, CDIDeviceIDs: []string{cdiKind + "=" + name}})
		if prepared {
			continue
		}
		d.lock.Lock()
		one, known := d.known[result.Device]
		d.lock.Unlock()
		switch {
		case !known:
			return nil, fmt.Errorf("node %s has no device %q", d.Node, result.Device)
		case one.Sick != "":
			return nil, fmt.Errorf("device %s cannot be used: %s", result.Device, one.Sick)
		}
		spec = append(spec, edits(name, len(spec), one.Device))
	}
	if prepared {
		return given, nil
	}
	return given, cdi.Write(d.CDI, string(claim.UID), cdiKind, spec)
}

func edits(name string, number int, one devices.Device) cdi.Device {
	device := cdi.Of(name, one.Files)
	if strings.HasPrefix(one.Files[0], "/dev/vfio/") {
		device.Edits.Env = []string{fmt.Sprintf("QAT%d=%s", number, one.Address)}
	}
	return device
}

// file says by being there that the claim is prepared.
func (d *Driver) file(claim types.UID) string { return cdi.File(d.CDI, string(claim)) }

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.file(claim.UID))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}
