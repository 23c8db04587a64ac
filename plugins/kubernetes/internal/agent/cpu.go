package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/rollout"
)

const (
	// deepest folder of a pod's control group: kubepods.slice, kubepods-burstable.slice, and what a kubelet may be put into.
	deepest = 6
	// page is the most that a pod may say of its requests, and reply how long it may take for that.
	page  = 16 << 20
	reply = 5 * time.Second
)

// costs tells what the canary's pods on this node have used, for whoever compares them.
type costs struct {
	pods func() []*corev1.Pod
	// groups is the folder of the node's control groups.
	groups string
	client http.Client
}

// ServeHTTP gives them for one namespace, by the UIDs of pods.
func (c *costs) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	all, err := c.of(request.Context(), query.Get("namespace"), query.Get("requests"))
	if err != nil {
		http.Error(answer, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(all)
}

func (c *costs) of(ctx context.Context, namespace, metric string) (map[types.UID]rollout.Cost, error) {
	wanted := map[string]*corev1.Pod{}
	for _, pod := range c.pods() {
		_, drawn := pod.Annotations[inject.Drawn]
		if pod.Namespace == namespace && drawn && pod.Status.Phase == corev1.PodRunning && pod.Status.StartTime != nil {
			wanted[string(pod.UID)] = pod
		}
	}
	all := map[types.UID]rollout.Cost{}
	if len(wanted) == 0 {
		return all, nil
	}
	used, err := processorTimes(c.groups, wanted)
	if err != nil {
		return nil, err
	}
	for uid, seconds := range used {
		pod := wanted[uid]
		cost := rollout.Cost{CPU: seconds, Seconds: time.Since(pod.Status.StartTime.Time).Seconds()}
		if metric != "" {
			// A pod that does not say it is compared by its CPU alone, if most do not.
			if requests, err := c.requests(ctx, pod, metric); err == nil {
				cost.Requests = &requests
			}
		}
		all[pod.UID] = cost
	}
	return all, nil
}

// processorTimes are those of pods' control groups, in seconds. What a container has used that has ended is in them.
func processorTimes(root string, wanted map[string]*corev1.Pod) (map[string]float64, error) {
	// The first version has a hierarchy for each kind.
	for _, folder := range []string{"cpuacct", "cpu,cpuacct"} {
		if _, err := os.Stat(filepath.Join(root, folder, "cpuacct.usage")); err == nil {
			root = filepath.Join(root, folder)
			break
		}
	}
	// A link is not walked into.
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("the control groups of this node cannot be read: %w", err)
	}
	used := map[string]float64{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil || !entry.IsDir():
			// Groups come and go.
			return nil
		case strings.Count(strings.TrimPrefix(path, root), "/") > deepest:
			return fs.SkipDir
		}
		uid, is := podOf(entry.Name())
		if !is {
			return nil
		}
		if wanted[uid] != nil {
			if seconds, err := processorTime(path); err == nil {
				used[uid] = seconds
			}
		}
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("the control groups of this node cannot be read: %w", err)
	}
	return used, nil
}

// podOf is whose group this is: podUID, or kubepods-burstable-podUID.slice with _ for -, where systemd makes them.
func podOf(name string) (uid string, is bool) {
	at := strings.LastIndex(name, "pod")
	if at < 0 {
		return "", false
	}
	uid = strings.ReplaceAll(strings.TrimSuffix(name[at+3:], ".slice"), "_", "-")
	return uid, len(uid) >= 32 && (at == 0 || strings.HasPrefix(name, "kubepods-"))
}

func processorTime(group string) (float64, error) {
	if text, err := os.ReadFile(filepath.Join(group, "cpuacct.usage")); err == nil {
		nanoseconds, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
		return float64(nanoseconds) / 1e9, err
	}
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "usage_usec "); is {
			microseconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return float64(microseconds) / 1e6, err
		}
	}
	return 0, errors.New("no usage in cpu.stat")
}

// requests asks the pod itself, where its annotations for Prometheus say.
func (c *costs) requests(ctx context.Context, pod *corev1.Pod, metric string) (float64, error) {
	port, err := strconv.ParseUint(pod.Annotations["prometheus.io/port"], 10, 16)
	if err != nil || pod.Status.PodIP == "" || pod.Spec.HostNetwork {
		// The node's own network is not the pod's.
		return 0, errors.New("it does not say where its metrics are")
	}
	path := pod.Annotations["prometheus.io/path"]
	if path == "" {
		path = "/metrics"
	}
	ctx, stop := context.WithTimeout(ctx, reply)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, strconv.FormatUint(port, 10))+"/"+strings.TrimPrefix(path, "/"), nil)
	if err != nil {
		return 0, err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", answer.StatusCode)
	}
	return total(io.LimitReader(answer.Body, page), metric)
}

// total of all series of a counter, or of how often something was observed.
func total(text io.Reader, metric string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return 0, err
	}
	family := families[metric]
	if family == nil {
		family = families[strings.TrimSuffix(metric, "_count")]
	}
	if family == nil {
		return 0, fmt.Errorf("no metric %s", metric)
	}
	sum := 0.0
	for _, one := range family.Metric {
		sum += one.GetCounter().GetValue() + one.GetUntyped().GetValue() + float64(one.GetHistogram().GetSampleCount()+one.GetSummary().GetSampleCount())
	}
	return sum, nil
}

// noRedirect: a pod is asked, and nobody whom it names.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
