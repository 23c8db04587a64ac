package inject

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Settings of the installation.
type Settings struct {
	// Image has the libraries and the program that copies them.
	Image      string
	PullPolicy corev1.PullPolicy
	// ImageVolumes mounts the image itself instead of a copy: for clusters whose every node can.
	ImageVolumes bool
}

// Surroundings of one admission.
type Surroundings struct {
	// Namespace has the annotations of the pod's namespace.
	Namespace map[string]string
	// OtherArchitectures says whether the cluster has nodes for which there are no libraries.
	OtherArchitectures bool
	// SwitchedOff is the kill switch.
	SwitchedOff bool
	// Request identifies the admission; a canary draws by it.
	Request string
}

// Reason says why a container, or the whole pod, is treated as it is, and what to do about it.
type Reason struct {
	Container string
	What      string
	Fix       string
}

func (r Reason) String() string {
	text := r.What
	if r.Container != "" {
		text = r.Container + ": " + text
	}
	if r.Fix != "" {
		text += "; " + r.Fix
	}
	return text
}

// Decision is what is to be done to a pod.
type Decision struct {
	State   State
	Reasons []Reason

	containers  []string
	node        bool
	environment []corev1.EnvVar
}

// Text is the reasons, one a line.
func (d Decision) Text() string {
	lines := make([]string, len(d.Reasons))
	for i, reason := range d.Reasons {
		lines[i] = reason.String()
	}
	return strings.Join(lines, "\n")
}

func leave(state State, what, fix string) Decision {
	return Decision{State: state, Reasons: []Reason{{What: what, Fix: fix}}}
}

// Decide says what is to be done to a pod. It changes nothing.
func Decide(pod *corev1.Pod, around Surroundings) Decision {
	if decision, ends := decideForPod(pod, around); ends {
		return decision
	}
	wish, err := parseWish(pod.Annotations, around.Namespace)
	if err != nil {
		return leave(LeftAlone, err.Error(), "")
	}
	decision := Decision{State: LeftAlone, node: wish.node, environment: wish.environment()}
	chosen := chosenContainers(pod)
	for _, name := range chosen.unknown {
		decision.Reasons = append(decision.Reasons, Reason{name, "the pod has no such container", "correct the annotation " + Containers})
	}
	for _, container := range candidates(pod) {
		if !chosen.has(container.Name) {
			continue
		}
		if reason := obstacle(pod, container, wish.node); reason != nil {
			decision.Reasons = append(decision.Reasons, *reason)
			continue
		}
		decision.containers = append(decision.containers, container.Name)
		decision.Reasons = append(decision.Reasons, Reason{container.Name, "accelerated: " + strings.Join(wish.names, ", "), ""})
	}
	if len(decision.containers) > 0 {
		decision.State = draw(pod, around)
	}
	switch decision.State {
	case Stock:
		return leave(Stock, "this pod is one that the canary is compared with", "")
	case HeldState:
		return leave(HeldState, "the canary of this namespace is held: "+around.Namespace[Held],
			"look at the accelerated pods, then remove the annotation "+Held+" of the namespace")
	}
	return decision
}

// What is true of a pod as a whole, whatever its containers are.
func decideForPod(pod *corev1.Pod, around Surroundings) (Decision, bool) {
	switch {
	case optedOut(pod):
		return leave(LeftAlone, "the pod has opted out ("+Inject+")", ""), true
	case around.SwitchedOff:
		return leave(Off, "hasten is switched off in this cluster", "set `accelerate: \"on\"` in the ConfigMap hasten-switch"), true
	case wantsNode(pod, corev1.LabelOSStable, "linux") == no:
		return leave(LeftAlone, "the pod is not for Linux", ""), true
	}
	switch wantsNode(pod, corev1.LabelArchStable, "amd64") {
	case no:
		return leave(LeftAlone, "the pod is not for amd64", ""), true
	case unknown:
		if around.OtherArchitectures {
			return leave(LeftAlone, "the cluster has nodes of other architectures, and the pod may land on one",
				"add `nodeSelector: {kubernetes.io/arch: amd64}` to the pod"), true
		}
	}
	if clash := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeName && v.EmptyDir == nil && v.Image == nil }); clash {
		return leave(LeftAlone, "the pod has a volume of its own that is called "+volumeName, "rename it"), true
	}
	return Decision{}, false
}

func optedOut(pod *corev1.Pod) bool {
	for _, place := range []map[string]string{pod.Labels, pod.Annotations} {
		if value, said := place[Inject]; said && value != "enabled" && value != "true" {
			return true
		}
	}
	return false
}

type answer int

const (
	unknown answer = iota
	yes
	no
)

// wantsNode says whether the pod can only land on nodes whose label has the value (yes), on none of them (no), or on both.
func wantsNode(pod *corev1.Pod, label, value string) answer {
	if label == corev1.LabelOSStable && pod.Spec.OS != nil {
		return answerFor(string(pod.Spec.OS.Name) == value)
	}
	if selected, said := pod.Spec.NodeSelector[label]; said {
		return answerFor(selected == value)
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return unknown
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	allowed, excluded := 0, 0
	for _, term := range terms {
		switch termWants(term, label, value) {
		case yes:
			allowed++
		case no:
			excluded++
		}
	}
	switch {
	case len(terms) > 0 && allowed == len(terms):
		return yes
	case len(terms) > 0 && excluded == len(terms):
		return no
	}
	return unknown
}

// The expressions of a term must all hold, so one that is certain is enough.
func termWants(term corev1.NodeSelectorTerm, label, value string) answer {
	for _, expression := range term.MatchExpressions {
		if expression.Key != label {
			continue
		}
		has := slices.Contains(expression.Values, value)
		switch {
		case expression.Operator == corev1.NodeSelectorOpIn && !has:
			return no
		case expression.Operator == corev1.NodeSelectorOpIn && len(expression.Values) == 1:
			return yes
		case expression.Operator == corev1.NodeSelectorOpNotIn && has:
			return no
		}
	}
	return unknown
}

func answerFor(is bool) answer {
	if is {
		return yes
	}
	return no
}

// candidates are the containers that live as long as the pod: the usual ones, and sidecars among the init containers.
func candidates(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			all = append(all, container)
		}
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}

type choice struct {
	names   []string
	unknown []string
}

func (c choice) has(name string) bool { return c.names == nil || slices.Contains(c.names, name) }

func chosenContainers(pod *corev1.Pod) choice {
	text, said := pod.Annotations[Containers]
	if !said {
		return choice{}
	}
	chosen := choice{names: list(text)}
	for _, name := range chosen.names {
		if !slices.ContainsFunc(candidates(pod), func(c *corev1.Container) bool { return c.Name == name }) {
			chosen.unknown = append(chosen.unknown, name)
		}
	}
	return chosen
}

// list never gives nil, which would mean that nothing was said.
func list(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })...)
}

// obstacle is why a container is left alone, or nil.
func obstacle(pod *corev1.Pod, container *corev1.Container, node bool) *Reason {
	reason := func(what, fix string) *Reason { return &Reason{container.Name, what, fix} }
	for _, mount := range container.VolumeMounts {
		path := strings.TrimRight(mount.MountPath, "/")
		if mount.Name != volumeName && (path == Folder || strings.HasPrefix(path, Folder+"/")) {
			return reason("it has a volume of its own at "+mount.MountPath, "mount it elsewhere")
		}
	}
	for _, variable := range container.Env {
		matters := variable.Name == preload || variable.Name == nodeOptions && node
		if matters && variable.ValueFrom != nil {
			return reason("its "+variable.Name+" comes from elsewhere (valueFrom), and cannot be appended to",
				"write the value into the pod, or append "+Shim+" where it comes from")
		}
	}
	if len(container.EnvFrom) > 0 && !sets(container, preload) && pod.Annotations[EnvFrom] != "safe" {
		return reason("its envFrom may set "+preload+", which would be lost",
			"if it does not, set the annotation `"+EnvFrom+": safe` on the pod")
	}
	return nil
}

func sets(container *corev1.Container, name string) bool {
	return slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// draw is the canary's: the same admission always draws the same, and a pod that has drawn keeps what it has.
func draw(pod *corev1.Pod, around Surroundings) State {
	text, said := around.Namespace[Canary]
	if !said {
		return Accelerated
	}
	if State(pod.Labels[StateKey]) == Accelerated || State(pod.Labels[StateKey]) == Stock {
		return State(pod.Labels[StateKey])
	}
	if _, held := around.Namespace[Held]; held {
		return HeldState
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	// What cannot be read accelerates nobody.
	if err != nil || percent <= 0 {
		return Stock
	}
	hash := fnv.New32a()
	fmt.Fprint(hash, around.Request)
	if mix(hash.Sum32())%100 < uint32(percent) {
		return Accelerated
	}
	return Stock
}

// mix spreads FNV's last bytes, which alone differ between similar names, over the whole number.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
