package agent

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hasten.dev/kubernetes/internal/inject"
)

const (
	uidA = "11111111-2222-3333-4444-555555555555"
	uidB = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
)

func groups(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestProcessorTimesAreThoseOfThePodsOwnGroups(t *testing.T) {
	second := "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"
	for name, files := range map[string]map[string]string{
		"second version, systemd": {
			"cpu.stat": second, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uidA, "-", "_") + ".slice/cpu.stat": second,
			"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uidA, "-", "_") + ".slice/cri-containerd-0.scope/cpu.stat": "usage_usec 7\n",
		},
		"second version, cgroupfs": {"own/kubepods/besteffort/pod" + uidA + "/cpu.stat": second, "own/kubepods/pod" + uidB + "/cpu.stat": second},
		"first version":            {"cpu,cpuacct/cpuacct.usage": "9", "cpu,cpuacct/kubepods/burstable/pod" + uidA + "/cpuacct.usage": "1500000000\n", "memory/kubepods/pod" + uidA + "/x": ""},
	} {
		used, err := processorTimes(groups(t, files), map[string]*corev1.Pod{uidA: {}})
		if err != nil || len(used) != 1 || used[uidA] != 1.5 {
			t.Errorf("%s: %v %v", name, used, err)
		}
	}
	if _, err := processorTimes(filepath.Join(t.TempDir(), "nothing"), nil); err == nil {
		t.Error("no control groups, and no fault")
	}
}

const page1 = `# TYPE http_requests_total counter
http_requests_total{code="200"} 900
http_requests_total{code="500"} 100
# TYPE latency_seconds histogram
latency_seconds_bucket{le="+Inf"} 70
latency_seconds_sum 3
latency_seconds_count 70
`

func TestCostsArePerRequestWhereAPodExportsThem(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/stats":
			fmt.Fprint(answer, page1)
		case "/elsewhere":
			http.Redirect(answer, request, "/stats", http.StatusFound)
		default:
			http.NotFound(answer, request)
		}
	}))
	defer web.Close()
	address, _ := url.Parse(web.URL)
	pod := func(uid, path string, change func(*corev1.Pod)) *corev1.Pod {
		begun := metav1.NewTime(time.Now().Add(-100 * time.Second))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "shop", Annotations: map[string]string{inject.Drawn: "10", "prometheus.io/port": address.Port(), "prometheus.io/path": path}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.Hostname(), StartTime: &begun}}
		if change != nil {
			change(pod)
		}
		return pod
	}
	root := groups(t, map[string]string{"kubepods/pod" + uidA + "/cpu.stat": "usage_usec 2000000\n"})
	ask := func(metric string, one *corev1.Pod) *float64 {
		t.Helper()
		here := &costs{pods: func() []*corev1.Pod { return []*corev1.Pod{one} }, groups: root, client: http.Client{CheckRedirect: noRedirect}}
		all, err := here.of(context.Background(), "shop", metric)
		cost, there := all[uidA]
		if err != nil || !there || cost.CPU != 2 || math.Abs(cost.Seconds-100) > 50 {
			t.Fatalf("%+v %v", all, err)
		}
		return cost.Requests
	}
	if got := ask("http_requests_total", pod(uidA, "/stats", nil)); got == nil || *got != 1000 {
		t.Error(got)
	}
	if got := ask("latency_seconds_count", pod(uidA, "stats", nil)); got == nil || *got != 70 {
		t.Error(got)
	}
	for name, got := range map[string]*float64{
		"not wanted":         ask("", pod(uidA, "/stats", nil)),
		"not exported":       ask("requests", pod(uidA, "/stats", nil)),
		"not there":          ask("http_requests_total", pod(uidA, "", nil)),
		"another's":          ask("http_requests_total", pod(uidA, "/elsewhere", nil)),
		"the node's network": ask("http_requests_total", pod(uidA, "/stats", func(p *corev1.Pod) { p.Spec.HostNetwork = true })),
		"no port":            ask("http_requests_total", pod(uidA, "/stats", func(p *corev1.Pod) { p.Annotations["prometheus.io/port"] = "http" })),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, *got)
		}
	}
	// Pods that were not drawn, and those of other namespaces, are nobody's business.
	for _, other := range []*corev1.Pod{pod(uidA, "", func(p *corev1.Pod) { p.Namespace = "bank" }), pod(uidA, "", func(p *corev1.Pod) { p.Annotations = nil })} {
		here := &costs{pods: func() []*corev1.Pod { return []*corev1.Pod{other} }, groups: root}
		if all, err := here.of(context.Background(), "shop", ""); err != nil || len(all) != 0 {
			t.Errorf("%v %v", all, err)
		}
	}
}
