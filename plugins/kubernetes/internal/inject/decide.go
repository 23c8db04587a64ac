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
	// From is where pods get the libraries.
	From Source
}

// Source of the libraries.
type Source string

const (
	// Node has them on its disk, where the agent has put them. A pod that finds none starts without: nothing is pulled for
	// it, and nothing runs in it.
	Node Source = "node"
	// Copy is an init container that copies them from the image, for which the pod waits.
	Copy Source = "copy"
	// Image mounts the image itself: for clusters whose every node can, and the pod waits until it is pulled.
	Image Source = "image"
)

// ParseSource reads one.
func ParseSource(text string) (Source, error) {
	switch source := Source(text); source {
	case Node, Copy, Image:
		return source, nil
	}
	return "", fmt.Errorf("libraries come from node, copy or image, not from %q", text)
}

// Surroundings of one admission.
type Surroundings struct {
	// Namespace has the annotations of the pod's namespace.
	Namespace map[string]string
	// OtherArchitectures says whether the cluster has nodes for which there are no libraries.
	OtherArchitectures bool
	// SwitchedOff is the kill switch.
	SwitchedOff bool
	// NoLibraries is why pods of this namespace cannot have the libraries now; empty if they can.
	NoLibraries string
	// Request identifies the admission; a canary draws by it.
	Request string
}

// Reason says why a container, or the whole pod, is treated as it is, and what to do about it.
type Reason struct {
	// Code is for metrics: short, and one of few.
	Code      string
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
	drawn       string
}

// Text is the reasons, one a line.
func (d Decision) Text() string {
	lines := make([]string, len(d.Reasons))
	for i, reason := range d.Reasons {
		lines[i] = reason.String()
	}
	return strings.Join(lines, "\n")
}

// Codes are those of the reasons, each once; of an accelerated pod there are none.
func (d Decision) Codes() []string {
	var codes []string
	for _, reason := range d.Reasons {
		if reason.Code != "" && !slices.Contains(codes, reason.Code) {
			codes = append(codes, reason.Code)
		}
	}
	return codes
}

func leave(state State, code, what, fix string) Decision {
	return Decision{State: state, Reasons: []Reason{{Code: code, What: what, Fix: fix}}}
}

// Decide says what is to be done to a pod. It changes nothing.
func Decide(pod *corev1.Pod, around Surroundings) Decision {
	if decision, ends := decideForPod(pod, around); ends {
		return decision
	}
	wish, err := parseWish(pod.Annotations, around.Namespace)
	if err != nil {
		return leave(LeftAlone, "annotation", err.Error(), "")
	}
	decision := Decision{State: LeftAlone, node: wish.node, environment: wish.environment()}
	chosen := chosenContainers(pod)
	for _, name := range chosen.unknown {
		decision.Reasons = append(decision.Reasons, Reason{"annotation", name, "the pod has no such container", "correct the annotation " + Containers})
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
		decision.Reasons = append(decision.Reasons, Reason{"", container.Name, "accelerated: " + strings.Join(wish.names, ", "), ""})
	}
	decision.Reasons = append(decision.Reasons, traps(pod)...)
	if len(decision.containers) > 0 {
		decision.State = draw(pod, around)
	}
	switch decision.State {
	case Accelerated:
		decision.drawn = drawnBy(pod, around)
	case Stock:
		stock := leave(Stock, "canary", "this pod is one that the canary is compared with", "")
		stock.drawn = drawnBy(pod, around)
		return stock
	case HeldState:
		return leave(HeldState, "canary-held", "the canary of this namespace is held: "+around.Namespace[Held],
			"look at the accelerated pods, then remove the annotation "+Held+" of the namespace")
	}
	return decision
}

// What is true of a pod as a whole, whatever its containers are.
func decideForPod(pod *corev1.Pod, around Surroundings) (Decision, bool) {
	switch {
	case optedOut(pod):
		return leave(LeftAlone, "opted-out", "the pod has opted out ("+Inject+")", ""), true
	case around.SwitchedOff:
		return leave(Off, "switched-off", "hasten is switched off in this cluster", "set `accelerate: \"on\"` in the ConfigMap hasten-switch"), true
	case around.NoLibraries != "":
		return leave(LeftAlone, "no-libraries", around.NoLibraries, "pods that start later are accelerated"), true
	case wantsNode(pod, corev1.LabelOSStable, "linux") == no:
		return leave(LeftAlone, "os", "the pod is not for Linux", ""), true
	}
	switch wantsNode(pod, corev1.LabelArchStable, "amd64") {
	case no:
		return leave(LeftAlone, "architecture", "the pod is not for amd64", ""), true
	case unknown:
		if around.OtherArchitectures {
			return leave(LeftAlone, "architecture", "the cluster has nodes of other architectures, and the pod may land on one",
				"add `nodeSelector: {kubernetes.io/arch: amd64}` to the pod"), true
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if foreign(volume) {
			return leave(LeftAlone, "volume", "the pod has a volume of its own that is called "+volume.Name, "rename it"), true
		}
	}
	return Decision{}, false
}

// foreign says whether a volume that is called like one of ours is somebody else's.
func foreign(volume corev1.Volume) bool {
	switch volume.Name {
	case volumeName:
		claim := volume.PersistentVolumeClaim
		return volume.EmptyDir == nil && volume.Image == nil && (claim == nil || claim.ClaimName != Claim || !claim.ReadOnly)
	case loaderName:
		return volume.DownwardAPI == nil
	}
	return false
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
	reason := func(code, what, fix string) *Reason { return &Reason{code, container.Name, what, fix} }
	for _, mount := range container.VolumeMounts {
		path := strings.TrimRight(mount.MountPath, "/")
		ours := mount.Name == volumeName || mount.Name == loaderName
		if !ours && (path == Folder || strings.HasPrefix(path, Folder+"/") || path == loaderFolder) {
			return reason("volume", "it has a volume of its own at "+mount.MountPath, "mount it elsewhere")
		}
	}
	for _, variable := range container.Env {
		matters := variable.Name == preload || variable.Name == nodeOptions && node
		if matters && variable.ValueFrom != nil {
			return reason("value-from", "its "+variable.Name+" comes from elsewhere (valueFrom), and cannot be appended to",
				"write the value into the pod, or append "+Shim+" where it comes from")
		}
	}
	if len(container.EnvFrom) > 0 && !sets(container, preload) && pod.Annotations[EnvFrom] != "safe" {
		return reason("env-from", "its envFrom may set "+preload+", which would be lost",
			"if it does not, set the annotation `"+EnvFrom+": safe` on the pod")
	}
	return nil
}

// traps are what will not work for a container, though nothing keeps it from being accelerated. They have no code: nothing is counted.
func traps(pod *corev1.Pod) (all []Reason) {
	for _, container := range candidates(pod) {
		if !asksForVFIO(container) || mayLock(container) {
			continue
		}
		all = append(all, Reason{"", container.Name, "it asks for QAT, whose library locks memory, and has no right to: the device may fail with ENOMEM, and work is done in software",
			"add the capability IPC_LOCK, or let the runtime of the node have a high limit of locked memory"})
	}
	return all
}

// asksForVFIO says whether a container has requested QAT, as Intel's plugins name it, or by a domain.
func asksForVFIO(container *corev1.Container) bool {
	for name := range container.Resources.Limits {
		domain, rest, _ := strings.Cut(string(name), "/")
		if domain == "qat.intel.com" || strings.HasPrefix(rest, "qat-") {
			return true
		}
	}
	return false
}

func mayLock(container *corev1.Container) bool {
	security := container.SecurityContext
	if security == nil {
		return false
	}
	if security.Privileged != nil && *security.Privileged {
		return true
	}
	return security.Capabilities != nil && (slices.Contains(security.Capabilities.Add, "IPC_LOCK") || slices.Contains(security.Capabilities.Add, "ALL"))
}

func sets(container *corev1.Container, name string) bool {
	return slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// drawnBy is the percentage by which a pod was drawn first.
func drawnBy(pod *corev1.Pod, around Surroundings) string {
	if before, said := pod.Annotations[Drawn]; said {
		return before
	}
	return percentage(around.Namespace)
}

// percentage of a canary in its one spelling, or nothing.
func percentage(namespace map[string]string) string {
	text, said := namespace[Canary]
	if !said {
		return ""
	}
	return strconv.Itoa(Percent(text))
}

// Percent reads a canary. What cannot be read accelerates nobody.
func Percent(text string) int {
	percent, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	if err != nil {
		return 0
	}
	return max(0, min(percent, 100))
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
	hash := fnv.New32a()
	fmt.Fprint(hash, around.Request)
	if mix(hash.Sum32())%100 < uint32(Percent(text)) {
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
