//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"hasten.dev/kubernetes/internal/agent"
	"hasten.dev/kubernetes/internal/inject"
)

// How large the simulated cluster is.
const (
	manyNodes      = 1000
	manyPods       = 20_000
	manyNamespaces = 20
	// quiet is how many pods are asked about one after the other.
	quiet = 2000
)

const callOfOurs = `name="pods.hasten.dev"`

// finding is a row of the report.
type finding struct {
	What  string `json:"what"`
	Value string `json:"value"`
}

// The API server is real, and so are the webhook and a thousand agents. Nodes are objects, and no pod runs.
func TestScale(t *testing.T) {
	folder := os.Getenv("HASTEN_E2E_SCALE")
	if folder == "" {
		t.Skip("minutes: `make e2e-kubernetes-scale` asks for it")
	}
	config, api := cluster(t, claimControllers)
	namespace(t, api, home, nil, nil)
	render(t, config, api, nil).apply()
	metrics := "127.0.0.1:" + port(t)
	webhook := serve(t, config, api, "--metrics", metrics)
	for i := range manyNamespaces {
		var annotations map[string]string
		if i == 0 {
			annotations = map[string]string{inject.Canary: "50"}
		}
		namespace(t, api, place(i), map[string]string{inject.Inject: "enabled"}, annotations)
	}
	fast := rest.CopyConfig(config)
	fast.QPS = -1
	many := kubernetes.NewForConfigOrDie(fast)
	parallel(t, manyNodes, func(i int) error { return simulated(many, i) })
	for i := range manyNamespaces {
		eventually(t, "pods of "+place(i)+" are accelerated", func() bool {
			got := state(start(t, api, place(i), metav1.DryRunAll))
			return got == inject.Accelerated || got == inject.Stock
		})
	}
	heard, stop := agents(t, many)
	defer stop()

	begun, before := time.Now(), processorTime(t, webhook.Process.Pid)
	parallel(t, manyPods, func(i int) error { return light(many, i) })
	took, spent := time.Since(begun), processorTime(t, webhook.Process.Pid)-before
	// The time of an answer, where nobody competes for the processors but whoever else is on this machine.
	own, servers := func() string { return scrape(t, "https://"+metrics+"/metrics", config.BearerToken) }, func() string { return scrape(t, config.Host+"/metrics", config.BearerToken) }
	ownBefore, serversBefore := own(), servers()
	for i := range quiet {
		start(t, api, place(i%manyNamespaces), metav1.DryRunAll)
	}
	text, server := own(), servers()

	toggled := time.Now()
	toggle(t, api, "off")
	eventually(t, "every agent has heard it", func() bool { return heard() >= manyNodes })
	reach := time.Since(toggled)

	calls := sum(text, `rest_client_requests_total\{[^}]*\}`)
	pods := sum(text, `rest_client_requests_total\{[^}]*method="GET"[^}]*\}`)
	rows := []finding{
		{"nodes, pods, namespaces", fmt.Sprintf("%d, %d, %d", manyNodes, manyPods, manyNamespaces)},
		{"admissions per second, with everything on this machine", fmt.Sprintf("%.0f", manyPods/took.Seconds())},
		{"webhook: processor time of an answer", (spent / manyPods).Round(time.Microsecond).String()},
		{"webhook: time of an answer, one pod after the other, median", quantile(text, ownBefore, "controller_runtime_webhook_latency_seconds", "", 0.5)},
		{"webhook: time of an answer, one pod after the other, 99 %", quantile(text, ownBefore, "controller_runtime_webhook_latency_seconds", "", 0.99)},
		{"API server: time of the call, one pod after the other, median", quantile(server, serversBefore, "apiserver_admission_webhook_admission_duration_seconds", callOfOurs, 0.5)},
		{"API server: time of the call, one pod after the other, 99 %", quantile(server, serversBefore, "apiserver_admission_webhook_admission_duration_seconds", callOfOurs, 0.99)},
		{"API server: time of the call, 16 at once, 99 %", quantile(serversBefore, "", "apiserver_admission_webhook_admission_duration_seconds", callOfOurs, 0.99)},
		{"API server: calls without an answer", fmt.Sprintf("%.0f", sum(server, `apiserver_admission_webhook_fail_open_count\{[^}]*pods.hasten.dev[^}]*\}`))},
		{"webhook: largest memory", memoryOf(t, webhook.Process.Pid)},
		{"webhook: requests to the API server in all", fmt.Sprintf("%.0f, %.0f of them GET", calls, pods)},
		{"watches of agents", fmt.Sprint(2 * manyNodes)},
		{"kill switch, until the last agent acts", reach.Round(100 * time.Millisecond).String()},
	}
	for _, row := range rows {
		t.Logf("| %s | %s |", row.What, row.Value)
	}
	keep(t, folder, rows)
	if failed := sum(text, `hasten_admissions_total\{[^}]*state="error"[^}]*\}`); failed > 0 {
		t.Errorf("the webhook failed for %.0f pods", failed)
	}
	// On a busy machine, some calls take longer than two seconds: the report has them, and these pods started as they were.
	if admitted := sum(text, `hasten_admissions_total\{[^}]*\}`); admitted < 0.99*manyPods {
		t.Errorf("only %.0f of %d pods came to the webhook", admitted, manyPods)
	}
}

func place(i int) string { return fmt.Sprintf("team-%02d", i) }

func parallel(t *testing.T, count int, do func(int) error) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func simulated(api *kubernetes.Clientset, i int) error {
	_, err := api.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}, metav1.CreateOptions{})
	return err
}

// light is a pod as a Deployment's, on a node already.
func light(api *kubernetes.Clientset, i int) error {
	_, err := api.CoreV1().Pods(place(i%manyNamespaces)).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%04d", i%manyNodes), Containers: []corev1.Container{{Name: "web", Image: "nginx",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
	}, metav1.CreateOptions{})
	return err
}

// agents are a thousand of the real ones in one process. What they run says only that it was run.
func agents(t *testing.T, api *kubernetes.Clientset) (heard func() int, stop func()) {
	t.Helper()
	folder := t.TempDir()
	said, hasten := filepath.Join(folder, "said"), filepath.Join(folder, "hasten")
	if err := os.WriteFile(hasten, []byte("#!/bin/sh\necho >>"+said+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range manyNodes {
		one := &agent.Agent{API: api, Node: fmt.Sprintf("node-%04d", i), Namespace: home, Hasten: hasten, Every: time.Hour, Events: &record.FakeRecorder{}}
		all.Go(func() { _ = one.Run(ctx) })
	}
	heard = func() int {
		text, _ := os.ReadFile(said)
		return len(text)
	}
	return heard, func() { cancel(); all.Wait() }
}

func scrape(t *testing.T, url, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := unverified.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %s", url, err, answer.Status)
	}
	return string(text)
}

func sum(text, expression string) float64 {
	all := 0.0
	for _, found := range regexp.MustCompile(`(?m)^`+expression+` ([-0-9.e+]+)$`).FindAllStringSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(found[1], 64)
		all += value
	}
	return all
}

// quantile is the upper bound of the bucket that has it: no more is known. Before has what was counted before.
func quantile(after, before, name, label string, part float64) string {
	expression := regexp.MustCompile(`(?m)^(` + name + `_bucket\{[^}]*le="([^"]+)"[^}]*\}) ([0-9.e+]+)$`)
	earlier := map[string]float64{}
	for _, found := range expression.FindAllStringSubmatch(before, -1) {
		earlier[found[1]], _ = strconv.ParseFloat(found[3], 64)
	}
	counts := map[float64]float64{}
	total := 0.0
	for _, found := range expression.FindAllStringSubmatch(after, -1) {
		if !strings.Contains(found[0], label) {
			continue
		}
		bound, _ := strconv.ParseFloat(found[2], 64)
		count, _ := strconv.ParseFloat(found[3], 64)
		// Of several series, one for each operation.
		counts[bound] += count - earlier[found[1]]
		total = max(total, counts[bound])
	}
	for _, bound := range slices.Sorted(maps.Keys(counts)) {
		if total > 0 && counts[bound] >= part*total {
			return "≤ " + time.Duration(bound*float64(time.Second)).String()
		}
	}
	return "unknown"
}

// processorTime of a process since its start.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	total := time.Duration(0)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil {
			nanoseconds, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			total += time.Duration(nanoseconds)
		}
	}
	return total
}

func memoryOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the kernel does not say how much memory there was")
	}
	kib, _ := strconv.Atoi(string(found[1]))
	return fmt.Sprintf("%d MiB", kib/1024)
}

func keep(t *testing.T, folder string, rows []finding) {
	t.Helper()
	report, err := json.MarshalIndent(map[string]any{"schema": 1, "kind": "kubernetes-scale", "cpu": processor(), "threads": runtime.NumCPU(),
		"kubernetes": "1.36.3", "date": time.Now().UTC().Format(time.DateOnly), "rows": rows}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kubernetes-scale.json"), append(report, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := quote("scale", "| what | |", rows); err != nil {
		t.Fatal(err)
	}
}
