// Package inject decides what is done to a pod, and does it. It knows no API server: a pod, the annotations of its
// namespace, and the settings of the installation go in; a decision with a reason for each container comes out.
package inject

// What users write, on a namespace or on a pod, and what hasten writes on a pod.
const (
	// Label of a namespace, and label or annotation of a pod: "enabled" or "disabled".
	Inject = "hasten.dev/inject"
	// Annotation of a pod: the containers to accelerate, separated by commas. Otherwise all of them.
	Containers = "hasten.dev/containers"
	// Annotations of a pod or of a namespace: accelerators to apply, or to leave out.
	Only    = "hasten.dev/only"
	Without = "hasten.dev/without"
	// Annotation of a pod or of a namespace: auto, off, qat, iaa.
	Devices = "hasten.dev/devices"
	// Annotation of a pod: "safe" says that its envFrom sets neither LD_PRELOAD nor NODE_OPTIONS.
	EnvFrom = "hasten.dev/env-from"
	// Annotation of a namespace: the percentage of its new pods to accelerate.
	Canary = "hasten.dev/canary"
	// Annotation of a namespace, written when its canary is held: why.
	Held = "hasten.dev/held"

	// Label of a pod, written at its admission: one of the states below.
	StateKey = "hasten.dev/state"
	// Annotation of a pod, written at its admission: the reasons, one a line.
	Reasons = "hasten.dev/reasons"
)

// State is what became of a pod.
type State string

const (
	Accelerated State = "accelerated"
	LeftAlone   State = "left-alone"
	// Stock pods are the siblings that a canary is compared with.
	Stock State = "stock"
	// Held pods would have been accelerated, had their namespace's canary not been held.
	HeldState State = "held"
	// Off is the kill switch.
	Off State = "off"
)

const (
	// Folder is where containers find the libraries.
	Folder = "/opt/hasten"
	// Shim loads what suits the C library that it finds, or nothing; it never keeps a program from starting.
	Shim     = Folder + "/libhasten.so"
	register = Folder + "/node/register.js"

	volumeName = "hasten-dev-libraries"
	copyName   = "hasten-dev-copy"
	// ImageFolder is where the image has the libraries.
	ImageFolder = "/usr/lib/hasten"

	preload     = "LD_PRELOAD"
	nodeOptions = "NODE_OPTIONS"
)
