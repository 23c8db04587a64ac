package dra

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

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

func TestDevicesThatAreWellArePublishedWithAttributes(t *testing.T) {
	published := driver(t).resources().Pools["one"].Slices[0].Devices
	byName := map[string]resourceapi.Device{}
	for _, one := range published {
		if problems := validation.IsDNS1123Label(one.Name); len(problems) > 0 {
			t.Errorf("%s: %v", one.Name, problems)
		}
		byName[one.Name] = one
	}
	// Not those that share an IOMMU group, and not the queue that is disabled.
	want := []string{"dlb-0000-6d-00-0", "dsa-dsa0-wq0-0-0", "dsa-dsa0-wq0-0-1", "iaa-iax1-wq1-0-0", "iaa-iax1-wq1-0-1", "iaa-iax1-wq1-1-0",
		"qat-0000-6b-00-1", "qat-0000-6b-00-2", "qat-0000-e8-00-1", "qat-0000-e8-00-2"}
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
	is("iaa-iax1-wq1-1-0", "mode", "dedicated")
	if node := byName["qat-0000-e8-00-1"].Attributes["numaNode"].IntValue; node == nil || *node != 1 {
		t.Error(node)
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
	var spec cdiSpec
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
			published <- len(resources.Pools["one"].Slices[0].Devices)
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
	for _, want := range []int{10, 8, 10} {
		if got := <-published; got != want {
			t.Errorf("%d instead of %d", got, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
