package devices

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"hasten.dev/kubernetes/internal/cdi"
)

// machine is what `hasten check --json` says of the tree that e2e/devices.sh makes.
func machine(t *testing.T) []Facts {
	t.Helper()
	text, err := os.ReadFile("testdata/check.json")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// change changes the device of an address.
func change(facts []Facts, address string, how func(*Facts)) []Facts {
	facts = slices.Clone(facts)
	for i := range facts {
		if facts[i].Address == address {
			how(&facts[i])
		}
	}
	return facts
}

func sick(offers map[string][]Device, resource string) map[string]string {
	all := map[string]string{}
	for _, device := range offers[resource] {
		all[device.ID] = device.Sick
	}
	return all
}

func word(text string) *string { return &text }

func TestResourcesAreNamedAsIntelsPluginsNameThem(t *testing.T) {
	offers := Offers(machine(t), Options{Share: 2})
	got := map[string][]string{}
	for resource, devices := range offers {
		for _, device := range devices {
			got[resource] = append(got[resource], device.ID)
		}
	}
	want := map[string][]string{
		"qat.intel.com/asym":              {"0000:6b:00.1", "0000:6b:00.2"},
		"qat.intel.com/dc":                {"0000:e8:00.1", "0000:e8:00.2"},
		"qat.intel.com/generic":           {"0000:3d:01.0", "0000:3d:01.1"},
		"iaa.intel.com/wq-user-shared":    {"iax1-wq1.0-0", "iax1-wq1.0-1"},
		"iaa.intel.com/wq-user-dedicated": {"iax1-wq1.1-0"},
		"dsa.intel.com/wq-user-shared":    {"dsa0-wq0.0-0", "dsa0-wq0.0-1", "dsa0-wq0.1-0", "dsa0-wq0.1-1"},
		"dlb.intel.com/pf":                {"0000:6d:00.0"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if own := Offers(machine(t), Options{Domain: "hasten.dev"}); len(own["hasten.dev/qat-asym"]) != 2 || len(own["hasten.dev/iaa-wq-user-shared"]) != 1 {
		t.Errorf("%v", own)
	}
	for services, name := range map[string]string{"sym;asym": "cy", "asym;sym": "cy", "asym,sym": "cy", "dc": "dc", "asym;dc": "asym-dc", "dc;asym": "asym-dc", "dcc": "dcc"} {
		if got := servicesName(services); got != name {
			t.Errorf("%s is %s", services, got)
		}
	}
}

// Intel's plugin says of every IAA and DSA queue that it is well, and of a QAT device only whether its firmware answers.
func TestHealthIsReal(t *testing.T) {
	no := false
	none := uint32(7)
	for name, c := range map[string]struct {
		address, resource, id, want string
		how                         func(*Facts)
	}{
		"all is well":         {"", "qat.intel.com/asym", "0000:6b:00.1", "", nil},
		"firmware is silent":  {"0000:6b:00.0", "qat.intel.com/asym", "0000:6b:00.1", "does not answer", func(f *Facts) { f.QAT.Heartbeat = word("lost") }},
		"device is down":      {"0000:6b:00.0", "qat.intel.com/asym", "0000:6b:00.2", "is down", func(f *Facts) { f.State = word("down") }},
		"driver is gone":      {"0000:6b:00.0", "qat.intel.com/asym", "0000:6b:00.2", "no driver", func(f *Facts) { f.Driver = nil }},
		"IOMMU group":         {"", "qat.intel.com/generic", "0000:3d:01.0", "shares an IOMMU group with 0000:3d:01.1", nil},
		"no IOMMU":            {"0000:e8:00.1", "qat.intel.com/dc", "0000:e8:00.1", "no IOMMU", func(f *Facts) { f.File = &File{"/dev/vfio/noiommu-3", "granted"} }},
		"VFIO file is gone":   {"0000:e8:00.1", "qat.intel.com/dc", "0000:e8:00.1", "is not there", func(f *Facts) { f.File = &File{"/dev/vfio/234", "missing"} }},
		"queue is disabled":   {"", "dsa.intel.com/wq-user-shared", "dsa0-wq0.1-0", "wq0.1 is not enabled", nil},
		"its unit is":         {"0000:6a:00.0", "dsa.intel.com/wq-user-shared", "dsa0-wq0.0-0", "dsa0 is not enabled", func(f *Facts) { f.Unit.State = word("disabled") }},
		"no engine":           {"0000:6e:00.0", "iaa.intel.com/wq-user-shared", "iax1-wq1.0-0", "no engine", func(f *Facts) { f.Unit.Queues[0].Group = &none }},
		"no PASID":            {"0000:6e:00.0", "iaa.intel.com/wq-user-shared", "iax1-wq1.0-0", "PASID", func(f *Facts) { f.Unit.PASID = &no }},
		"not for a dedicated": {"0000:6e:00.0", "iaa.intel.com/wq-user-dedicated", "iax1-wq1.1-0", "", func(f *Facts) { f.Unit.PASID = &no }},
		"queue's file":        {"0000:6e:00.0", "iaa.intel.com/wq-user-dedicated", "iax1-wq1.1-0", "is not there", func(f *Facts) { f.Unit.Queues[1].File.Access = "missing" }},
		"DLB's file":          {"0000:6d:00.0", "dlb.intel.com/pf", "0000:6d:00.0", "is not there", func(f *Facts) { f.File.Access = "missing" }},
	} {
		facts := machine(t)
		if c.how != nil {
			facts = change(facts, c.address, c.how)
		}
		why, there := sick(Offers(facts, Options{}), c.resource)[c.id]
		if !there || c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %t, %q", name, there, why)
		}
	}
}

// A kernel's queue, and a function that the kernel drives, are not for user space.
func TestWhatIsNotForUserSpaceIsNotOffered(t *testing.T) {
	facts := change(machine(t), "0000:6e:00.0", func(f *Facts) { f.Unit.Queues[0].Type, f.Unit.Queues[1].Mode = "kernel", nil })
	facts = change(facts, "0000:6b:00.1", func(f *Facts) { f.Driver = word("4xxxvf") })
	facts = change(facts, "0000:6d:00.0", func(f *Facts) { f.Driver = nil })
	offers := Offers(facts, Options{})
	if len(offers["iaa.intel.com/wq-user-shared"])+len(offers["iaa.intel.com/wq-user-dedicated"])+len(offers["dlb.intel.com/pf"]) != 0 || len(offers["qat.intel.com/asym"]) != 1 {
		t.Errorf("%v", offers)
	}
}

func TestAnotherSchemaIsRefused(t *testing.T) {
	for text, want := range map[string]string{`{"schema": 2, "hasten": "9.0"}`: "hasten 9.0 speaks schema 2", `[]`: "cannot be read", ``: "cannot be read"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDevicesOfOnePieceOfHardwareArePreferred(t *testing.T) {
	node := func(n int64) *int64 { return &n }
	devices := []Device{
		{ID: "a1", Unit: "a", NUMA: node(0)}, {ID: "a2", Unit: "a", NUMA: node(0)}, {ID: "b1", Unit: "b", NUMA: node(0)},
		{ID: "c1", Unit: "c", NUMA: node(1)}, {ID: "c2", Unit: "c", NUMA: node(1)}, {ID: "c3", Unit: "c", NUMA: node(1)}, {ID: "d1", Unit: "d"},
	}
	all := []string{"d1", "b1", "c1", "a1", "c2", "a2", "c3"}
	for _, c := range []struct {
		available, must []string
		size            int
		want            []string
	}{
		// One that is alone goes first, so that pairs stay.
		{all, nil, 1, []string{"d1"}},
		{all, nil, 2, []string{"a1", "a2"}},
		{all, nil, 3, []string{"c1", "c2", "c3"}},
		{all, []string{"b1"}, 2, []string{"b1", "a1"}},
		{all, []string{"a2"}, 3, []string{"a2", "a1", "b1"}},
		// What the kubelet wants in any case is in; what it does not know is not.
		{[]string{"a1"}, []string{"c3"}, 2, []string{"c3", "a1"}},
		{[]string{"strange"}, nil, 1, nil},
	} {
		if got := prefer(devices, c.available, c.must, c.size); !slices.Equal(got, c.want) {
			t.Errorf("%d of %v with %v: %v instead of %v", c.size, c.available, c.must, got, c.want)
		}
	}
}

// kubelet is a simulation of one: it takes registrations, and asks plugins. The real one is asked in e2e.
type kubelet struct {
	api.UnimplementedRegistrationServer
	*testing.T
	folder string
	server *grpc.Server
	lock   sync.Mutex
	calls  map[string]int
}

func (k *kubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if request.Version != api.Version || !request.Options.GetPreferredAllocationAvailable {
		k.Errorf("%v", request)
	}
	k.calls[request.ResourceName]++
	return &api.Empty{}, nil
}

func (k *kubelet) registrations(resource string) int {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.calls[resource]
}

// start is what a kubelet does at its start: it removes the sockets of all plugins.
func (k *kubelet) start() {
	k.Helper()
	sockets, _ := filepath.Glob(filepath.Join(k.folder, "*.sock"))
	for _, socket := range sockets {
		_ = os.Remove(socket)
	}
	listener, err := net.Listen("unix", filepath.Join(k.folder, "kubelet.sock"))
	if err != nil {
		k.Fatal(err)
	}
	k.server = grpc.NewServer()
	api.RegisterRegistrationServer(k.server, k)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(k.server)
}

func (k *kubelet) plugin(resource string) api.DevicePluginClient {
	k.Helper()
	connection, err := grpc.NewClient("unix://"+filepath.Join(k.folder, newPlugin(resource, "").endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = connection.Close() })
	return api.NewDevicePluginClient(connection)
}

// scene is a manager and its kubelet, with devices that the test can change.
type scene struct {
	*kubelet
	lock  sync.Mutex
	facts []Facts
	err   error
}

func begin(t *testing.T) *scene {
	t.Helper()
	// The path of a socket is short.
	folder, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{kubelet: &kubelet{T: t, folder: folder, calls: map[string]int{}}, facts: machine(t)}
	s.start()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	manager := &Manager{Facts: s.read, Options: Options{Share: 2}, Folder: folder, Every: 10 * time.Millisecond}
	go func() { done <- manager.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.server.Stop()
		_ = os.RemoveAll(folder)
	})
	eventually(t, "every resource is known", func() bool {
		return s.registrations("qat.intel.com/asym") == 1 && s.registrations("iaa.intel.com/wq-user-shared") == 1 && s.registrations("dlb.intel.com/pf") == 1
	})
	return s
}

func (s *scene) read(context.Context) ([]Facts, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.facts, s.err
}

func (s *scene) set(facts []Facts, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.facts, s.err = facts, err
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal("never happened: " + what)
}

func health(answer *api.ListAndWatchResponse) map[string]string {
	all := map[string]string{}
	for _, device := range answer.Devices {
		all[device.ID] = device.Health
	}
	return all
}

func TestTheKubeletHearsOfEveryChange(t *testing.T) {
	s := begin(t)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	stream, err := s.plugin("qat.intel.com/asym").ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want map[string]string) {
		t.Helper()
		answer, err := stream.Recv()
		if err != nil || !reflect.DeepEqual(health(answer), want) {
			t.Errorf("%v, %v", answer, err)
		}
	}
	answer, err := stream.Recv()
	if err != nil || len(answer.Devices) != 2 || answer.Devices[0].Topology.Nodes[0].ID != 0 {
		t.Fatalf("%v, %v", answer, err)
	}
	well := machine(t)
	s.set(change(machine(t), "0000:6b:00.0", func(f *Facts) { f.QAT.Heartbeat = word("lost") }), nil)
	next(map[string]string{"0000:6b:00.1": api.Unhealthy, "0000:6b:00.2": api.Unhealthy})
	s.set(well, nil)
	next(map[string]string{"0000:6b:00.1": api.Healthy, "0000:6b:00.2": api.Healthy})
	// An answer that is none is no news.
	s.set(nil, errors.New("the command was killed"))
	time.Sleep(50 * time.Millisecond)
	s.set(slices.DeleteFunc(machine(t), func(f Facts) bool { return f.Address == "0000:6b:00.1" }), nil)
	next(map[string]string{"0000:6b:00.2": api.Healthy})
	s.set(nil, nil)
	next(map[string]string{})
}

func TestAContainerGetsWhatItNeedsAndNothingElse(t *testing.T) {
	s := begin(t)
	ctx := context.Background()
	allocate := func(resource string, ids ...string) (*api.ContainerAllocateResponse, error) {
		answer, err := s.plugin(resource).Allocate(ctx, &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
		if err != nil {
			return nil, err
		}
		return answer.ContainerResponses[0], nil
	}
	paths := func(of *api.ContainerAllocateResponse) (all []string) {
		for _, device := range of.Devices {
			all = append(all, device.HostPath+" "+device.Permissions)
		}
		return all
	}
	qat, err := allocate("qat.intel.com/asym", "0000:6b:00.2", "0000:6b:00.1")
	if err != nil || !slices.Equal(paths(qat), []string{"/dev/vfio/vfio rw", "/dev/vfio/109 rw", "/dev/vfio/108 rw"}) ||
		!reflect.DeepEqual(qat.Envs, map[string]string{"QAT0": "0000:6b:00.2", "QAT1": "0000:6b:00.1"}) {
		t.Errorf("%v, %v", qat, err)
	}
	// Two shares of one queue are one file.
	iaa, err := allocate("iaa.intel.com/wq-user-shared", "iax1-wq1.0-0", "iax1-wq1.0-1")
	if err != nil || !slices.Equal(paths(iaa), []string{"/dev/iax/wq1.0 rw"}) || len(iaa.Envs) != 0 {
		t.Errorf("%v, %v", iaa, err)
	}
	if _, err := allocate("qat.intel.com/asym", "0000:ff:00.1"); status.Code(err) != codes.NotFound {
		t.Errorf("a device that nobody has: %v", err)
	}
	if _, err := allocate("qat.intel.com/generic", "0000:3d:01.0"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "IOMMU group") {
		t.Errorf("a device that is sick: %v", err)
	}
	preferred, err := s.plugin("qat.intel.com/asym").GetPreferredAllocation(ctx, &api.PreferredAllocationRequest{ContainerRequests: []*api.ContainerPreferredAllocationRequest{
		{AvailableDeviceIDs: []string{"0000:6b:00.1", "0000:6b:00.2"}, AllocationSize: 1},
	}})
	if err != nil || len(preferred.ContainerResponses[0].DeviceIDs) != 1 {
		t.Errorf("%v, %v", preferred, err)
	}
}

func TestTheRuntimeIsToldOfDevicesByTheirNamesIfAskedTo(t *testing.T) {
	facts := machine(t)
	folder := filepath.Join(t.TempDir(), "cdi")
	manager := &Manager{Facts: func(context.Context) ([]Facts, error) { return facts, nil }, Options: Options{Share: 2, CDI: folder}, plugins: map[string]*plugin{}}
	manager.look(context.Background(), manager.ask(context.Background()))
	given, err := manager.plugins["iaa.intel.com/wq-user-shared"].Allocate(context.Background(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"iax1-wq1.0-1"}}}})
	if err != nil || len(given.ContainerResponses[0].Devices) != 0 || given.ContainerResponses[0].CdiDevices[0].Name != "hasten.dev/iaa-wq-user-shared=iax1-wq1.0-1" {
		t.Fatalf("%v %v", given, err)
	}
	text, err := os.ReadFile(cdi.File(folder, "iaa-wq-user-shared"))
	var spec cdi.Spec
	if err != nil || json.Unmarshal(text, &spec) != nil || spec.Kind != "hasten.dev/iaa-wq-user-shared" || spec.Devices[1].Name != "iax1-wq1.0-1" || spec.Devices[1].Edits.Nodes[0].Path != "/dev/iax/wq1.0" {
		t.Errorf("%v %s", err, text)
	}
	// What cannot be told to the runtime is not offered to the kubelet.
	blocked := &Manager{Facts: manager.Facts, Options: Options{CDI: cdi.File(folder, "iaa-wq-user-shared") + "/x"}, plugins: map[string]*plugin{}}
	blocked.look(context.Background(), blocked.ask(context.Background()))
	if devices, _ := blocked.plugins["dlb.intel.com/pf"].now(); len(devices) != 0 {
		t.Error(devices)
	}
	other := Options{Domain: "hasten.dev"}
	if class := newPlugin(other.resource("qat", "cy"), "").class(); class != "qat-cy" {
		t.Error(class)
	}
}

func TestAKubeletThatRestartsIsToldAgain(t *testing.T) {
	s := begin(t)
	for round := 2; round < 4; round++ {
		s.server.Stop()
		s.start()
		eventually(t, "every resource is known again", func() bool {
			return s.registrations("qat.intel.com/asym") >= round && s.registrations("dlb.intel.com/pf") >= round
		})
		if _, err := s.plugin("qat.intel.com/asym").GetDevicePluginOptions(context.Background(), &api.Empty{}); err != nil {
			t.Error(err)
		}
	}
	// A node that answers slowly, as a busy one does, is in nobody's way.
	s.lock.Lock()
	s.server.Stop()
	s.start()
	eventually(t, "every resource is known while the node is silent", func() bool {
		return s.registrations("qat.intel.com/asym") >= 4 && s.registrations("dlb.intel.com/pf") >= 4
	})
	s.lock.Unlock()
	// Somebody may remove the socket alone.
	before := s.registrations("dlb.intel.com/pf")
	if err := os.Remove(filepath.Join(s.folder, newPlugin("dlb.intel.com/pf", "").endpoint)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "that one is known again", func() bool { return s.registrations("dlb.intel.com/pf") > before })
}

// A moment without a socket would look to another plugin as if the kubelet had restarted.
func TestASocketIsReplacedInOneStep(t *testing.T) {
	// The path of a socket is short.
	folder, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "plugin.sock")
	replace := func() {
		listener, err := listen(socket)
		if err != nil {
			t.Error(err)
			return
		}
		_ = listener.Close()
	}
	replace()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 500 {
			replace()
		}
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		if _, there := inodeOf(socket); !there {
			t.Fatal("there was none")
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// Another plugin for the same resource is the kubelet's choice: whoever came last has it. Two that took it back from each other
// would never end.
func TestTwoPluginsDoNotFight(t *testing.T) {
	s := begin(t)
	other := &Manager{Facts: s.read, Folder: s.folder, Every: 10 * time.Millisecond, Options: Options{Share: 2}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	eventually(t, "the first is at rest", func() bool { return s.registrations("dlb.intel.com/pf") == 1 })
	go func() { done <- other.Run(ctx) }()
	eventually(t, "the second is known", func() bool { return s.registrations("dlb.intel.com/pf") >= 2 })
	time.Sleep(300 * time.Millisecond)
	if n := s.registrations("dlb.intel.com/pf"); n != 2 {
		t.Errorf("%d registrations", n)
	}
	// When the second ends, the first has it again.
	stop()
	<-done
	eventually(t, "the first is known again", func() bool { return s.registrations("dlb.intel.com/pf") == 3 })
}
