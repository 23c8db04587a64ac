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
	// Annotation of a namespace: the time after which a canary that is not held is doubled.
	Promote = "hasten.dev/promote"
	// Annotation of a namespace: "enabled" evicts the accelerated pods of its canary once it is held.
	Withdraw = "hasten.dev/withdraw"
	// Annotation of a namespace, written when its canary is held: why.
	Held = "hasten.dev/held"
	// Annotation of a namespace: the metric of its pods that counts requests, by which the CPU of canaries is divided.
	Requests = "hasten.dev/requests"
	// Annotation of a namespace, written while it has a canary: how the CPU of its pods compares.
	CanaryCPU = "hasten.dev/canary-cpu"
	// Annotation of a namespace, written while it has a canary: what its judge remembers.
	Judge = "hasten.dev/canary-judge"

	// Label of a pod, written at its admission: one of the states below.
	StateKey = "hasten.dev/state"
	// Annotation of a pod, written at its admission: the reasons, one a line.
	Reasons = "hasten.dev/reasons"
	// Annotation of a pod, written at its admission: the percentage by which it was drawn.
	Drawn = "hasten.dev/drawn"
	// Annotation of a pod, written at its admission: what Node.js loads first.
	NodeLoader = "hasten.dev/node-loader"
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
	// Folder is where a volume with the libraries is mounted. They are in a folder below, so that those of a node can be
	// exchanged at once, by a link.
	Folder    = "/opt/hasten"
	Libraries = Folder + "/" + Current
	Current   = "current"
	// Shim loads what suits the C library that it finds, or nothing; it never keeps a program from starting.
	Shim = Libraries + "/" + ShimName
	// ShimName is what makes use of the other libraries.
	ShimName = "libhasten.so"

	// Claim is the PersistentVolumeClaim of each labelled namespace for the libraries of the node.
	Claim = "hasten-libraries"

	volumeName = "hasten-dev-libraries"
	copyName   = "hasten-dev-copy"
	// ImageFolder is where the image has the libraries.
	ImageFolder = "/usr/lib/hasten"

	loaderName   = "hasten-dev-node"
	loaderFolder = "/opt/hasten-node"
	loaderFile   = "register.js"
	// A Node.js that does not find what it is told to require does not start. So it gets a file that is always there,
	// made of the pod's own annotation, and that may look for the plugin in vain.
	loaderText = `delete require.cache[__filename]; try { require("` + Libraries + `/node/register.js") } catch {}`

	preload     = "LD_PRELOAD"
	nodeOptions = "NODE_OPTIONS"

	// Without this, the cluster autoscaler keeps a node for the sake of a pod's emptyDir.
	evictable = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)
