package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const exported = `# HELP hasten_processes processes
# TYPE hasten_processes gauge
hasten_processes{program="nginx",accelerator="tls",container_id="aa"} 2
hasten_processes{program="nginx",accelerator="tls",container_id="bb"} 3
hasten_processes{program="nginx",accelerator="tls"} 4
# HELP hasten_cpu_saved_seconds_total saved
# TYPE hasten_cpu_saved_seconds_total counter
hasten_cpu_saved_seconds_total{program="nginx",accelerator="tls",op="rsa-2048-sign",container_id="aa"} 1.5
# HELP hasten_batch_lanes lanes
# TYPE hasten_batch_lanes histogram
hasten_batch_lanes_bucket{program="nginx",accelerator="tls",op="p256-sign",container_id="aa",le="1"} 1
hasten_batch_lanes_bucket{program="nginx",accelerator="tls",op="p256-sign",container_id="aa",le="+Inf"} 2
hasten_batch_lanes_sum{program="nginx",accelerator="tls",op="p256-sign",container_id="aa"} 9
hasten_batch_lanes_count{program="nginx",accelerator="tls",op="p256-sign",container_id="aa"} 2
`

func scrape(t *testing.T, status int, text string) (int, string) {
	t.Helper()
	exporter := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/metrics" {
			t.Error(request.URL)
		}
		answer.WriteHeader(status)
		_, _ = io.WriteString(answer, text)
	}))
	defer exporter.Close()
	own := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "hasten_node_libraries", Help: "x"})
	own.MustRegister(gauge)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Status: corev1.PodStatus{
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://aa"}, {Name: "starting"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "mesh", ContainerID: "cri-o://cc"}},
	}}
	server := &Server{Exporter: strings.TrimPrefix(exporter.URL, "http://"), Pods: func() []*corev1.Pod { return []*corev1.Pod{pod} }, Own: own}
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Code, answer.Body.String()
}

func TestContainersGetTheirNames(t *testing.T) {
	status, text := scrape(t, http.StatusOK, exported)
	for _, line := range []string{
		`hasten_processes{program="nginx",accelerator="tls",namespace="shop",pod="web-1",container="web"} 2`,
		// Neither may hide the other.
		`hasten_processes{program="nginx",accelerator="tls",container_id="bb"} 3`,
		`hasten_processes{program="nginx",accelerator="tls"} 4`,
		`hasten_cpu_saved_seconds_total{program="nginx",accelerator="tls",op="rsa-2048-sign",namespace="shop",pod="web-1",container="web"} 1.5`,
		`hasten_batch_lanes_bucket{program="nginx",accelerator="tls",op="p256-sign",namespace="shop",pod="web-1",container="web",le="+Inf"} 2`,
		`hasten_node_libraries 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
	if status != http.StatusOK || strings.Count(text, "# TYPE") != 4 {
		t.Errorf("%d\n%s", status, text)
	}
}

func TestNoAnswerIsNoMetrics(t *testing.T) {
	for text, status := range map[string]int{"too slow": http.StatusServiceUnavailable, "no {metrics": http.StatusOK} {
		if got, text := scrape(t, status, text); got != http.StatusServiceUnavailable || !strings.Contains(text, "the exporter of this node") {
			t.Errorf("%d: %s", got, text)
		}
	}
}

func TestAContainerIsFoundByItsIdentifier(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Status: corev1.PodStatus{
		ContainerStatuses:          []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://aa"}, {Name: "starting"}},
		InitContainerStatuses:      []corev1.ContainerStatus{{Name: "mesh", ContainerID: "cri-o://cc"}},
		EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", ContainerID: "containerd://"}},
	}}
	places := Places([]*corev1.Pod{pod})
	if len(places) != 2 || places["aa"] != (Place{"shop", "web-1", "web"}) || places["cc"].Container != "mesh" {
		t.Error(places)
	}
}
