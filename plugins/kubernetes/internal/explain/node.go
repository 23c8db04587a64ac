package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"hasten.dev/kubernetes/internal/inject"
)

// offers is what a node can do, from `hasten check --json`.
func offers(facts []byte) string {
	var report struct {
		Host struct {
			CPU struct {
				Model string `json:"model"`
			} `json:"cpu"`
			Devices []struct {
				Kind string `json:"kind"`
			} `json:"devices"`
		} `json:"host"`
		Accelerators []struct {
			Name     string `json:"name"`
			Decision string `json:"decision"`
			Reasons  []struct {
				Side string  `json:"side"`
				Text string  `json:"text"`
				Fix  *string `json:"fix"`
			} `json:"reasons"`
		} `json:"accelerators"`
	}
	if err := json.Unmarshal(facts, &report); err != nil {
		return "what its agent says cannot be read: " + err.Error()
	}
	lines := []string{report.Host.CPU.Model}
	kinds := map[string]int{}
	for _, device := range report.Host.Devices {
		kinds[device.Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		lines = append(lines, fmt.Sprintf("%s: %d functions", strings.ToUpper(kind), kinds[kind]))
	}
	for _, one := range report.Accelerators {
		lines = append(lines, one.Name+": "+one.Decision)
		for _, reason := range one.Reasons {
			// What speaks for it is not what somebody asks why for.
			if reason.Side != "for" {
				lines = append(lines, "  - "+reason.Text)
				if reason.Fix != nil {
					lines = append(lines, "    fix: "+*reason.Fix)
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// work of one program of a container.
type work struct {
	byEngine      map[string]float64
	fallbacks     map[string]float64
	all, original float64
	saved         float64
	processes     float64
	open          []string
}

// counters is what a pod's programs have done.
func counters(text string, pod *corev1.Pod) string {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return "what its agent counts cannot be read: " + err.Error()
	}
	programs := map[string]*work{}
	for name, family := range families {
		for _, metric := range family.Metric {
			labels := labelsOf(metric)
			if labels["namespace"] != pod.Namespace || labels["pod"] != pod.Name || labels["container"] == "" {
				continue
			}
			key := labels["container"] + ": " + labels["program"] + ", " + labels["accelerator"]
			if programs[key] == nil {
				programs[key] = &work{byEngine: map[string]float64{}, fallbacks: map[string]float64{}}
			}
			programs[key].count(name, labels, valueOf(metric))
		}
	}
	if len(programs) == 0 {
		if inject.State(pod.Labels[inject.StateKey]) != inject.Accelerated {
			return "nothing is counted, since nothing was to be accelerated"
		}
		return "no program of the pod has done anything that could be accelerated so far, or none can load the libraries: see its log for lines of the loader (ld.so)"
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(programs)) {
		lines = append(lines, key, programs[key].String())
	}
	return strings.Join(lines, "\n")
}

func (w *work) count(name string, labels map[string]string, value float64) {
	switch name {
	case "hasten_processes":
		w.processes += value
	case "hasten_ops_total":
		switch {
		case labels["result"] == "failed":
		case labels["engine"] == "original":
			w.all += value
			w.original += value
		default:
			w.all += value
			w.byEngine[labels["engine"]] += value
		}
	case "hasten_cpu_saved_seconds_total":
		w.saved += value
	case "hasten_fallback_total":
		w.fallbacks[labels["reason"]] += value
	case "hasten_breaker_state":
		if value > 0 {
			states := map[float64]string{1: "on trial", 2: "resting after a fault", 3: "disabled by hand"}
			w.open = append(w.open, labels["engine"]+" is "+states[value])
		}
	}
}

func (w *work) String() string {
	lines := []string{fmt.Sprintf("  %.0f processes; about %.2f s of CPU time saved", w.processes, w.saved)}
	if w.all > 0 {
		lines = append(lines, fmt.Sprintf("  %.0f of %.0f operations by engines (%.0f %%)", w.all-w.original, w.all, 100*(w.all-w.original)/w.all))
	}
	for _, engine := range largest(w.byEngine) {
		lines = append(lines, fmt.Sprintf("    %s: %.0f", engine, w.byEngine[engine]))
	}
	for _, reason := range largest(w.fallbacks) {
		lines = append(lines, fmt.Sprintf("  original path, %s: %.0f", reason, w.fallbacks[reason]))
	}
	slices.Sort(w.open)
	for _, engine := range w.open {
		lines = append(lines, "  "+engine)
	}
	return strings.Join(lines, "\n")
}

// largest three of what was counted at all.
func largest(counts map[string]float64) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(counts)), func(name string) bool { return counts[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return names[:min(len(names), 3)]
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, label := range metric.Label {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}

func valueOf(metric *dto.Metric) float64 {
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
}
