// Package telemetry serves what `hasten export` counts on a node, with the names that Kubernetes has for its containers.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// id is the exporter's label of a container.
	id = "container_id"
	// most bytes of the exporter's answer: it bounds its series, so more is not its answer.
	most = 64 << 20
	// pause before an exporter that has ended is started again.
	pause = 5 * time.Second
)

// Place is where a container is.
type Place struct{ Namespace, Pod, Container string }

// Places finds the containers of pods by their identifiers.
func Places(pods []*corev1.Pod) map[string]Place {
	places := map[string]Place{}
	for _, pod := range pods {
		for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses) {
			// containerd://0123…
			if _, name, named := strings.Cut(status.ContainerID, "://"); named && name != "" {
				places[name] = Place{pod.Namespace, pod.Name, status.Name}
			}
		}
	}
	return places
}

// Server answers scrapes.
type Server struct {
	// Exporter is the address of `hasten export`.
	Exporter string
	// Pods of this node.
	Pods func() []*corev1.Pod
	// Own metrics of the agent.
	Own    prometheus.Gatherer
	Client http.Client
}

// ServeHTTP gives the node's metrics and the agent's. An exporter that does not answer is a fault of the scrape: half an answer
// would look like processes that have ended.
func (s *Server) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	families, err := s.gather(request.Context())
	if err != nil {
		http.Error(answer, "the exporter of this node: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	answer.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(answer, format)
	for _, family := range families {
		if encoder.Encode(family) != nil {
			return
		}
	}
}

func (s *Server) gather(ctx context.Context) ([]*dto.MetricFamily, error) {
	text, err := s.scrape(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	places := Places(s.Pods())
	var families []*dto.MetricFamily
	for _, name := range sorted(parsed) {
		for _, metric := range parsed[name].Metric {
			metric.Label = rename(metric.Label, places)
		}
		families = append(families, parsed[name])
	}
	own, err := s.Own.Gather()
	return append(families, own...), err
}

func (s *Server) scrape(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Exporter+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := s.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("status %d", answer.StatusCode)
	case len(text) > most:
		return "", fmt.Errorf("it says more than %d bytes", most)
	}
	return string(text), nil
}

func sorted(families map[string]*dto.MetricFamily) []string {
	names := make([]string, 0, len(families))
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rename puts namespace, pod and container in place of an identifier. What belongs to no pod, or to one that has gone, keeps
// it, so that no two series become one.
func rename(labels []*dto.LabelPair, places map[string]Place) []*dto.LabelPair {
	at := slices.IndexFunc(labels, func(label *dto.LabelPair) bool { return label.GetName() == id })
	if at < 0 {
		return labels
	}
	place, known := places[labels[at].GetValue()]
	if !known {
		return labels
	}
	pair := func(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
	return slices.Replace(labels, at, at+1, pair("namespace", place.Namespace), pair("pod", place.Pod), pair("container", place.Container))
}

// Export keeps the exporter running until the context ends.
func Export(ctx context.Context, hasten, address string) {
	for ctx.Err() == nil {
		command := exec.CommandContext(ctx, hasten, "export", "--by-container", "--listen", address)
		command.Stderr = os.Stderr
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = 10 * time.Second
		if err := command.Run(); ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the exporter of this node has ended, and is started again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
