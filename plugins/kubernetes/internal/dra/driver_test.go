package dra

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"hasten.dev/kubernetes/internal/cdi"
	"hasten.dev/kubernetes/internal/devices"
)

var ctx = context.Background()

// facts are what `hasten check --json` says of a simulated machine.
func facts(t *testing.T) []devices.Facts {
	t.Helper()
	text, err := os.ReadFile("../devices/testdata/check.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := devices.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func driver(t *testing.T) *Driver {
	t.Helper()
	all := facts(t)
	d := &Driver{Node: "one", CDI: filepath.Join(t.TempDir(), "cdi"), Every: time.Millisecond, Options: devices.Options{Share: 2},
		Facts: func(context.Context) ([]devices.Facts, error) { return all, nil }}
	if changed, err := d.look(ctx); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if changed, err := d.look(ctx); err != nil || changed {
		t.Fatal(changed, err)
	}
	return d
}

func claim(uid string, names ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "shop", UID: types.UID(uid)}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, name := range names {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: Name, Pool: "one", Device: name})
	}
	return claim
}

func prepare(t *testing.T, d *Driver, claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	t.Helper()
	results, err := d.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{claim})
	if err != nil {
		t.Fatal(err)
	}
	return results[claim.UID]
}

func TestDevicesArePublishedWithAttributes(t *testing.T) {
	published := driver(t).resources().Pools["one"].Slices[0].Devices
	byName := map[string]resourceapi.Device{}
	for _, one := range published {
		if problems := validation.IsDNS1123Label(one.Name); len(problems) > 0 {
			t.Errorf("%s: %v", one.Name, problems)
		}
		byName[one.Name] = one
	}
	want := []string{"dlb-0000-6d-00-0", "dsa-dsa0-wq0-0-0", "dsa-dsa0-wq0-1-0", "iaa-iax1-wq1-0-0", "iaa-iax1-wq1-1-0",
		"qat-0000-3d-01-0", "qat-0000-3d-01-1", "qat-0000-6b-00-1", "qat-0000-6b-00-2", "qat-0000-e8-00-1", "qat-0000-e8-00-2"}
	var got []string
	for _, one := range published {
		got = append(got, one.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	is := func(device, attribute, want string) {
		t.Helper()
		if value := byName[device].Attributes[resourceapi.QualifiedName(attribute)].StringValue; value == nil || *value != want {
			t.Errorf("%s: %s is %v", device, attribute, value)
		}
	}
	is("qat-0000-e8-00-1", "kind", "qat")
	is("qat-0000-e8-00-1", "services", "dc")
	is("qat-0000-e8-00-1", "model", "4xxx")
	is("qat-0000-e8-00-1", "unit", "0000:e8:00.0")
	is("qat-0000-e8-00-1", "firmware", "4.19.0")
	if _, said := byName["qat-0000-6b-00-1"].Attributes["firmware"]; said {
		t.Error("nobody knows that device's firmware")
	}
	is("iaa-iax1-wq1-1-0", "mode", "dedicated")
	if node := byName["qat-0000-e8-00-1"].Attributes["numaNode"].IntValue; node == nil || *node != 1 {
		t.Error(node)
	}
	if entries := byName["iaa-iax1-wq1-1-0"].Attributes["entries"].IntValue; entries == nil || *entries != 32 {
		t.Error(entries)
	}
}

// taints of the devices that have any, by name.
func taints(d *Driver) map[string]string {
	all := map[string]string{}
	for _, one := range d.resources().Pools["one"].Slices[0].Devices {
		for _, taint := range one.Taints {
			all[one.Name] = taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
		}
	}
	return all
}

// age reads the facts with the heartbeat of one QAT device gone.
func age(t *testing.T, d *Driver) {
	t.Helper()
	all, lost := facts(t), "lost"
	for i := range all {
		if all[i].Address == "0000:e8:00.0" {
			all[i].QAT.Heartbeat = &lost
		}
	}
	d.Facts = func(context.Context) ([]devices.Facts, error) { return all, nil }
	if changed, err := d.look(ctx); err != nil || !changed {
		t.Fatal(changed, err)
	}
}

func TestABrokenDeviceHasATaintThatSaysWhy(t *testing.T) {
	d := driver(t)
	want := map[string]string{"qat-0000-3d-01-0": "devices.hasten.dev/sick=iommu-group-shared:NoSchedule",
		"qat-0000-3d-01-1": "devices.hasten.dev/sick=iommu-group-shared:NoSchedule", "dsa-dsa0-wq0-1-0": "devices.hasten.dev/sick=queue-disabled:NoSchedule"}
	if got := taints(d); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	d.Effect = resourceapi.DeviceTaintEffectNoExecute
	age(t, d)
	if got := taints(d); len(got) != 5 || got["qat-0000-e8-00-1"] != "devices.hasten.dev/sick=heartbeat-lost:NoExecute" {
		t.Errorf("%v", got)
	}
	for _, taint := range taints(d) {
		_, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(taint, ":NoExecute"), ":NoSchedule"), "=")
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("%s: %v", taint, problems)
		}
	}
}

func TestWhereTaintsAreUnknownABrokenDeviceIsNotPublished(t *testing.T) {
	d := driver(t)
	want := d.resources().Pools["one"].Slices[0]
	actual := want.DeepCopy()
	for i := range actual.Devices {
		actual.Devices[i].Taints = nil
	}
	slice := func(devices []resourceapi.Device) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Devices: devices}}
	}
	d.HandleError(ctx, &resourceslice.DroppedFieldsError{DesiredSlice: slice(want.Devices), ActualSlice: slice(actual.Devices)}, "dropped")
	if changed, err := d.look(ctx); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if got := d.resources().Pools["one"].Slices[0].Devices; len(got) != len(want.Devices)-3 || len(taints(d)) != 0 {
		t.Errorf("%d devices, %v", len(got), taints(d))
	}
	if changed, err := d.look(ctx); err != nil || changed {
		t.Errorf("published again and again: %t %v", changed, err)
	}
}

func TestASharedQueueHasACapacity(t *testing.T) {
	d := driver(t)
	for _, one := range d.resources().Pools["one"].Slices[0].Devices {
		shared := one.Name == "iaa-iax1-wq1-0-0" || strings.HasPrefix(one.Name, "dsa-")
		shares, has := one.Capacity["shares"]
		if has != shared || (one.AllowMultipleAllocations != nil && *one.AllowMultipleAllocations) != shared || has && (shares.Value.Value() != 2 || shares.RequestPolicy.Default.Value() != 1) {
			t.Errorf("%+v", one)
		}
	}
	// One claim may have two shares of one queue, by two requests.
	twice := claim("u", "iaa-iax1-wq1-0-0", "iaa-iax1-wq1-0-0")
	for i, id := range []types.UID{"s1", "s2"} {
		twice.Status.Allocation.Devices.Results[i].ShareID = &id
	}
	given := prepare(t, d, twice)
	if given.Err != nil || len(given.Devices) != 2 || *given.Devices[0].ShareID != "s1" || given.Devices[0].CDIDeviceIDs[0] == given.Devices[1].CDIDeviceIDs[0] {
		t.Errorf("%+v", given)
	}
}

// watcher is the kubelet's end of a stream.
type watcher struct {
	grpc.ServerStream
	ctx  context.Context
	said chan *health.NodeWatchResourcesResponse
}

func (w watcher) Context() context.Context                             { return w.ctx }
func (w watcher) Send(answer *health.NodeWatchResourcesResponse) error { w.said <- answer; return nil }

func TestTheKubeletHearsOfHealth(t *testing.T) {
	d := driver(t)
	running, stop := context.WithCancel(ctx)
	kubelet := watcher{ctx: running, said: make(chan *health.NodeWatchResourcesResponse, 10)}
	done := make(chan error)
	go func() { done <- d.NodeWatchResources(nil, kubelet) }()
	of := func(name string) *health.DeviceHealth {
		for _, one := range (<-kubelet.said).Devices {
			if one.Device.DeviceName == name && one.Device.PoolName == "one" {
				return one
			}
		}
		t.Fatalf("%s is not there", name)
		return nil
	}
	if first := of("qat-0000-e8-00-1"); first.Health != health.HealthStatus_HEALTHY || first.LastUpdatedTime == 0 || first.HealthCheckTimeoutSeconds < 30 {
		t.Errorf("%+v", first)
	}
	age(t, d)
	if now := of("qat-0000-e8-00-1"); now.Health != health.HealthStatus_UNHEALTHY || now.Message != "the firmware of 0000:e8:00.0 does not answer" {
		t.Errorf("%+v", now)
	}
	// What has not changed is said again, or the kubelet would take it for unknown.
	if _, err := d.look(ctx); err != nil {
		t.Fatal(err)
	}
	of("qat-0000-6b-00-1")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestADriverThatRestartsKnowsItsClaims(t *testing.T) {
	before := driver(t)
	mine := claim("u1", "qat-0000-e8-00-1")
	first := prepare(t, before, mine)
	written, err := os.ReadFile(before.file("u1"))
	if err != nil || first.Err != nil {
		t.Fatal(err, first.Err)
	}
	// Another process, which has not looked at the devices yet, or cannot.
	after := &Driver{Node: "one", CDI: before.CDI, Facts: func(context.Context) ([]devices.Facts, error) { return nil, errors.New("no answer") }}
	again := prepare(t, after, mine)
	if now, err := os.ReadFile(after.file("u1")); err != nil || string(now) != string(written) || again.Err != nil || !reflect.DeepEqual(again.Devices, first.Devices) {
		t.Errorf("%+v instead of %+v", again, first)
	}
	// Half of a file is none: the claim is prepared anew.
	if err := os.WriteFile(before.file("u2")+".new", written[:10], 0o644); err != nil {
		t.Fatal(err)
	}
	if second := prepare(t, before, claim("u2", "qat-0000-e8-00-2")); second.Err != nil {
		t.Error(second.Err)
	}
	if _, err := after.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{UID: "u1"}, {UID: "u2"}}); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(after.CDI); len(left) != 0 {
		t.Error(left)
	}
}

func TestAClaimIsPreparedOnceAndForGood(t *testing.T) {
	d := driver(t)
	mine := claim("u1", "qat-0000-e8-00-2", "qat-0000-e8-00-1")
	mine.Status.Allocation.Devices.Results = append(mine.Status.Allocation.Devices.Results,
		resourceapi.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example", Pool: "one", Device: "g"})
	first := prepare(t, d, mine)
	if first.Err != nil || len(first.Devices) != 2 || first.Devices[0].CDIDeviceIDs[0] != "hasten.dev/claim=u1-qat-0000-e8-00-2" || first.Devices[0].Requests[0] != "r" {
		t.Fatalf("%+v", first)
	}
	text, err := os.ReadFile(d.file("u1"))
	if err != nil {
		t.Fatal(err)
	}
	var spec cdi.Spec
	if err := json.Unmarshal(text, &spec); err != nil || spec.Kind != "hasten.dev/claim" || len(spec.Devices) != 2 {
		t.Fatalf("%v %s", err, text)
	}
	if edits := spec.Devices[1].Edits; edits.Nodes[1].Path != "/dev/vfio/233" || edits.Env[0] != "QAT1=0000:e8:00.1" {
		t.Errorf("%s", text)
	}
	// The device dies, the driver restarts, and the kubelet asks again: the container keeps what it has.
	d.Facts = func(context.Context) ([]devices.Facts, error) { return nil, nil }
	if _, err := d.look(ctx); err != nil {
		t.Fatal(err)
	}
	if again := prepare(t, d, mine); again.Err != nil || len(again.Devices) != 2 {
		t.Errorf("%+v", again)
	}
	for range 2 {
		results, err := d.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{UID: "u1"}})
		if err != nil || results["u1"] != nil {
			t.Errorf("%v %v", results, err)
		}
	}
	if left, _ := os.ReadDir(d.CDI); len(left) != 0 {
		t.Error(left)
	}
}

func TestWhatCannotBeGivenIsRefused(t *testing.T) {
	d := driver(t)
	for name, want := range map[string]string{"qat-0000-3d-01-0": "IOMMU group", "qat-nothing": "no device"} {
		if got := prepare(t, d, claim("u", name)); got.Err == nil || !strings.Contains(got.Err.Error(), want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	unallocated := claim("u")
	unallocated.Status.Allocation = nil
	if got := prepare(t, d, unallocated); got.Err == nil {
		t.Error("a claim without an allocation was prepared")
	}
	if _, err := os.Stat(d.file("u")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was refused was written")
	}
}

func TestEveryChangeIsPublishedAndNoAnswerIsNone(t *testing.T) {
	d := driver(t)
	d.known = nil
	all := facts(t)
	answers := make(chan func() ([]devices.Facts, error))
	d.Facts = func(ctx context.Context) ([]devices.Facts, error) {
		select {
		case answer := <-answers:
			return answer()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	running, stop := context.WithCancel(ctx)
	published := make(chan int, 10)
	done := make(chan error)
	go func() {
		done <- d.Run(running, func(_ context.Context, resources resourceslice.DriverResources) error {
			well := 0
			for _, one := range resources.Pools["one"].Slices[0].Devices {
				if len(one.Taints) == 0 {
					well++
				}
			}
			published <- well
			return nil
		})
	}()
	lost := "lost"
	sick := slices.Clone(all)
	for i := range sick {
		if sick[i].Address == "0000:6b:00.0" {
			about := *sick[i].QAT
			about.Heartbeat = &lost
			sick[i].QAT = &about
		}
	}
	for _, answer := range [][]devices.Facts{all, nil, sick, all} {
		answers <- func() ([]devices.Facts, error) {
			if answer == nil {
				return nil, errors.New("the command was killed")
			}
			return answer, nil
		}
	}
	for _, want := range []int{8, 6, 8} {
		if got := <-published; got != want {
			t.Errorf("%d instead of %d", got, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
