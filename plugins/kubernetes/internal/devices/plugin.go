package devices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/cdi"
)

// plugin offers one resource.
type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	// cdi is the folder of specifications, or empty.
	cdi string
	// endpoint is the name of its socket.
	endpoint string

	lock    sync.Mutex
	devices []Device
	// changed is closed when the devices are others.
	changed chan struct{}

	server *grpc.Server
	// socket that the server listens on, and which it is.
	socket string
	own    inode
}

func newPlugin(resource, cdi string) *plugin {
	return &plugin{resource: resource, cdi: cdi, endpoint: "hasten-" + strings.NewReplacer("/", "-", ".", "-").Replace(resource) + ".sock", changed: make(chan struct{})}
}

// set exchanges the devices, and says whether that changed anything.
func (p *plugin) set(devices []Device) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	same := slices.EqualFunc(p.devices, devices, func(a, b Device) bool { return a.ID == b.ID && a.Sick == b.Sick && slices.Equal(a.Files, b.Files) })
	if same {
		return false
	}
	p.devices = devices
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

func (p *plugin) now() ([]Device, <-chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.devices, p.changed
}

// GetDevicePluginOptions implements the API.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch tells the kubelet all devices, and again whenever one comes, goes, falls ill or recovers.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		devices, changed := p.now()
		answer := &api.ListAndWatchResponse{}
		for _, device := range devices {
			answer.Devices = append(answer.Devices, device.told())
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (d Device) told() *api.Device {
	told := &api.Device{ID: d.ID, Health: api.Healthy}
	if d.Sick != "" {
		told.Health = api.Unhealthy
	}
	if d.NUMA != nil {
		told.Topology = &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: *d.NUMA}}}
	}
	return told
}

// Allocate gives containers their devices. An identifier that is unknown, or of a device that is sick by now, is refused: the
// pod fails at its admission with the reason, and its controller makes another one.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	devices, _ := p.now()
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{Envs: map[string]string{}}
		for i, id := range container.DevicesIds {
			at := slices.IndexFunc(devices, func(d Device) bool { return d.ID == id })
			if at < 0 {
				return nil, status.Errorf(codes.NotFound, "%s has no device %q", p.resource, id)
			}
			if devices[at].Sick != "" {
				return nil, status.Errorf(codes.FailedPrecondition, "%s: device %s cannot be used: %s", p.resource, id, devices[at].Sick)
			}
			p.give(given, i, devices[at])
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func (p *plugin) give(to *api.ContainerAllocateResponse, number int, device Device) {
	if strings.Contains(p.resource, "qat") {
		// As Intel's plugin names them.
		to.Envs[fmt.Sprintf("QAT%d", number)] = device.Address
	}
	if p.cdi != "" {
		to.CdiDevices = append(to.CdiDevices, &api.CDIDevice{Name: "hasten.dev/" + p.class() + "=" + device.ID})
		return
	}
	for _, file := range device.Files {
		if !slices.ContainsFunc(to.Devices, func(d *api.DeviceSpec) bool { return d.HostPath == file }) {
			to.Devices = append(to.Devices, &api.DeviceSpec{HostPath: file, ContainerPath: file, Permissions: "rw"})
		}
	}
}

// class of the devices by their Container Device Interface: qat-cy for qat.intel.com/cy, and for hasten.dev/qat-cy.
func (p *plugin) class() string {
	domain, name, _ := strings.Cut(p.resource, "/")
	if kind, intel := strings.CutSuffix(domain, ".intel.com"); intel {
		return kind + "-" + name
	}
	return name
}

// specify tells the runtime which files the devices are, those that are sick included: a container that is made again has what it had.
func (p *plugin) specify(devices []Device) error {
	if p.cdi == "" {
		return nil
	}
	var all []cdi.Device
	for _, device := range devices {
		all = append(all, cdi.Of(device.ID, device.Files))
	}
	return cdi.Write(p.cdi, p.class(), "hasten.dev/"+p.class(), all)
}

// GetPreferredAllocation keeps a container's devices on one piece of hardware, or else on one NUMA node.
func (p *plugin) GetPreferredAllocation(_ context.Context, request *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	devices, _ := p.now()
	answer := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerPreferredAllocationResponse{
			DeviceIDs: prefer(devices, container.AvailableDeviceIDs, container.MustIncludeDeviceIDs, int(container.AllocationSize)),
		})
	}
	return answer, nil
}

func prefer(devices []Device, available, must []string, size int) []string {
	known := map[string]Device{}
	for _, device := range devices {
		known[device.ID] = device
	}
	chosen := slices.Clone(must)
	for len(chosen) < size {
		best, score := "", -1
		for _, id := range available {
			if device, is := known[id]; is && !slices.Contains(chosen, id) {
				if now := fit(device, chosen, available, known, size); now > score {
					best, score = id, now
				}
			}
		}
		if best == "" {
			break
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// fit says how well a device goes with what was chosen: the same hardware, the same node; and, for the first, hardware that has
// enough free, but no more than that, so that whoever wants many finds them.
func fit(device Device, chosen, available []string, known map[string]Device, size int) int {
	score := 0
	for _, id := range chosen {
		other := known[id]
		switch {
		case other.Unit == device.Unit:
			score += 100_000
		case other.NUMA != nil && device.NUMA != nil && *other.NUMA == *device.NUMA:
			score += 10_000
		}
	}
	free := 0
	for _, id := range available {
		if known[id].Unit == device.Unit && !slices.Contains(chosen, id) {
			free++
		}
	}
	if free >= size-len(chosen) {
		score += 5_000 - min(free, 4_000)
	} else {
		score += min(free, 500)
	}
	return score
}

// serve listens in the kubelet's folder and makes the plugin known.
func (p *plugin) serve(ctx context.Context, folder string) error {
	p.stop()
	socket := filepath.Join(folder, p.endpoint)
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	p.socket = socket
	p.own, _ = inodeOf(socket)
	p.server = grpc.NewServer()
	api.RegisterDevicePluginServer(p.server, p)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(p.server)
	connection, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: p.endpoint, ResourceName: p.resource,
		Options: &api.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	if err != nil {
		return fmt.Errorf("the kubelet does not take %s: %w", p.resource, err)
	}
	log.FromContext(ctx).Info("the kubelet knows", "resource", p.resource)
	return nil
}

// listen puts a socket where another may be, in one step: while there was none, another plugin for the same resource would
// take the kubelet to have restarted, and both would register without end.
func listen(socket string) (net.Listener, error) {
	fresh := fmt.Sprintf("%s.%08x", socket, rand.Uint32())
	listener, err := net.Listen("unix", fresh)
	if err != nil {
		return nil, err
	}
	// Somebody else's socket may be there by the time ours is closed.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Rename(fresh, socket); err != nil {
		_ = os.Remove(fresh)
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

func (p *plugin) stop() {
	if p.server == nil {
		return
	}
	p.server.Stop()
	p.server = nil
	if now, there := inodeOf(p.socket); there && now == p.own {
		_ = os.Remove(p.socket)
	}
}
