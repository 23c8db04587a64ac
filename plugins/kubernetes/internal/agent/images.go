package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/inject"
)

// images asks the node's runtime what images set by themselves. A variable of the pod counts before the image's, and only the
// node knows the image: so an LD_PRELOAD of the image is found to be replaced when the pod runs, not before.
type images struct {
	service cri.ImageServiceClient
}

func newImages(socket string) (*images, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("the runtime cannot be asked at %s: %w", socket, err)
	}
	return &images{cri.NewImageServiceClient(connection)}, nil
}

// preload is the LD_PRELOAD of an image; empty if it has none.
func (i *images) preload(ctx context.Context, image string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	answer, err := i.service.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: image}, Verbose: true})
	if err != nil {
		return "", err
	}
	var info struct {
		Spec struct {
			Config struct {
				Env []string `json:"Env"`
			} `json:"config"`
		} `json:"imageSpec"`
	}
	if err := json.Unmarshal([]byte(answer.Info["info"]), &info); err != nil {
		return "", fmt.Errorf("the runtime says nothing of the configuration of %s: %w", image, err)
	}
	for _, variable := range info.Spec.Config.Env {
		if value, is := strings.CutPrefix(variable, "LD_PRELOAD="); is {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// replaced tells a pod, once, whose image's LD_PRELOAD is out of force because of ours.
func (a *Agent) replaced(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || inject.State(pod.Labels[inject.StateKey]) != inject.Accelerated {
		return
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		key := string(pod.UID) + "/" + status.Name
		if status.State.Running == nil || status.ImageID == "" || !inject.OnlyOurs(pod, status.Name) {
			continue
		}
		if _, told := a.looked.LoadOrStore(key, true); told {
			continue
		}
		value, err := a.images.preload(ctx, status.ImageID)
		switch {
		case err != nil:
			log.FromContext(ctx).Error(err, "an image cannot be looked at", "image", status.Image)
		case value != "" && value != inject.Shim:
			a.Events.Eventf(pod, corev1.EventTypeWarning, "HastenPreloadReplaced",
				"%s: the image sets LD_PRELOAD=%s, which is not in force, since the pod's own value counts; write it into the pod, and hasten appends to it", status.Name, value)
		}
	}
}

// forget what was told to a pod that is gone.
func (a *Agent) forget(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		a.looked.Delete(string(pod.UID) + "/" + status.Name)
	}
}
