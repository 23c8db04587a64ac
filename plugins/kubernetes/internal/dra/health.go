package dra

import (
	"time"

	"google.golang.org/grpc"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

// mute is after how many looks without an answer nothing is known of a device any more.
const mute = 6

var _ health.DRAResourceHealthServer = (*Driver)(nil)

// NodeWatchResources tells the kubelet how the devices are, after each look. It tells those whose pods have them: as the status of
// their containers, with why.
func (d *Driver) NodeWatchResources(_ *health.NodeWatchResourcesRequest, stream grpc.ServerStreamingServer[health.NodeWatchResourcesResponse]) error {
	for {
		answer, changed := d.health()
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

func (d *Driver) health() (*health.NodeWatchResourcesResponse, <-chan struct{}) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	answer := &health.NodeWatchResourcesResponse{}
	for name, one := range d.known {
		told := &health.DeviceHealth{Device: &health.DeviceIdentifier{PoolName: d.Node, DeviceName: name}, Health: health.HealthStatus_HEALTHY,
			LastUpdatedTime: d.seen.Unix(), HealthCheckTimeoutSeconds: int64(max(mute*d.Every, 30*time.Second).Seconds())}
		if one.Sick != "" {
			told.Health, told.Message = health.HealthStatus_UNHEALTHY, one.Sick
		}
		answer.Devices = append(answer.Devices, told)
	}
	return answer, d.changed
}
