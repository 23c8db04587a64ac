package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Accelerators that a pod may name. The first are there unless it says otherwise; Node.js has to be asked for, since a
// Node.js that does not find its plugin does not start.
var (
	usual        = []string{"tls", "gzip", "envoy"}
	accelerators = append(slices.Clone(usual), "node")
)

// Engines by the device that they use.
var engines = map[string]string{"auto": "auto", "off": "off", "qat": "qatzip,qat", "iaa": "qpl"}

type wish struct {
	names   []string
	node    bool
	devices string
}

// parseWish reads what the pod wants, or else what its namespace does.
func parseWish(pod, namespace map[string]string) (wish, error) {
	wanted := slices.Clone(usual)
	if text, said := first(Only, pod, namespace); said {
		wanted = list(text)
	}
	without := []string{}
	if text, said := first(Without, pod, namespace); said {
		without = list(text)
	}
	for _, name := range append(slices.Clone(wanted), without...) {
		if !slices.Contains(accelerators, name) {
			return wish{}, fmt.Errorf("there is no accelerator %q: %s and %s take %s", name, Only, Without, strings.Join(accelerators, ", "))
		}
	}
	var result wish
	for _, name := range accelerators {
		if slices.Contains(wanted, name) && !slices.Contains(without, name) {
			result.names = append(result.names, name)
		}
	}
	if len(result.names) == 0 {
		return wish{}, fmt.Errorf("%s and %s leave no accelerator", Only, Without)
	}
	result.node = slices.Contains(result.names, "node")
	device, said := first(Devices, pod, namespace)
	if !said {
		return result, nil
	}
	engine, known := engines[strings.TrimSpace(device)]
	if !known {
		return wish{}, fmt.Errorf("%s: %q is none of auto, off, qat, iaa", Devices, device)
	}
	result.devices = engine
	return result, nil
}

func first(key string, places ...map[string]string) (string, bool) {
	for _, place := range places {
		if value, said := place[key]; said {
			return value, true
		}
	}
	return "", false
}

// environment is what the libraries read, except for the loader's own variables.
func (w wish) environment() []corev1.EnvVar {
	var variables []corev1.EnvVar
	var left []string
	for _, name := range accelerators {
		if !slices.Contains(w.names, name) {
			left = append(left, name)
		}
	}
	// Node.js is left out by not being named in NODE_OPTIONS; a child's own plugin is none of our business.
	left = slices.DeleteFunc(left, func(name string) bool { return name == "node" })
	if len(left) > 0 {
		variables = append(variables, corev1.EnvVar{Name: "HASTEN_DISABLE", Value: strings.Join(left, ",")})
	}
	if w.devices != "" {
		variables = append(variables, corev1.EnvVar{Name: "HASTEN_DEVICES", Value: w.devices})
	}
	return variables
}
