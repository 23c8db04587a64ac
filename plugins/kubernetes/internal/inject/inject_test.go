package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var (
	settings = Settings{Image: "registry.example/hasten:1", From: Node}
	copying  = Settings{Image: "registry.example/hasten:1", From: Copy}
)

func pod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func inject(pod *corev1.Pod, around Surroundings) *corev1.Pod {
	return injectFrom(settings, pod, around)
}

func injectFrom(settings Settings, pod *corev1.Pod, around Surroundings) *corev1.Pod {
	changed := pod.DeepCopy()
	Apply(changed, Decide(pod, around), settings)
	return changed
}

func value(container corev1.Container, name string) string {
	found := ""
	for _, variable := range container.Env {
		if variable.Name == name {
			found = variable.Value
		}
	}
	return found
}

const shop = `
metadata: {name: shop}
spec:
  containers: [{name: web, image: nginx}]
`

func TestAPlainPodIsAccelerated(t *testing.T) {
	got := inject(pod(t, shop), Surroundings{})
	if got.Labels[StateKey] != "accelerated" {
		t.Fatalf("%s: %s", got.Labels[StateKey], got.Annotations[Reasons])
	}
	web := got.Spec.Containers[0]
	if value(web, preload) != Shim || value(web, nodeOptions) != "" {
		t.Errorf("environment: %v", web.Env)
	}
	if len(web.VolumeMounts) != 1 || !web.VolumeMounts[0].ReadOnly || web.VolumeMounts[0].MountPath != Folder {
		t.Errorf("mounts: %v", web.VolumeMounts)
	}
	// Nothing is pulled for it, and nothing runs in it: so there is nothing that a pod could wait for.
	claim := got.Spec.Volumes[0].PersistentVolumeClaim
	if len(got.Spec.InitContainers) != 0 || claim == nil || claim.ClaimName != Claim || !claim.ReadOnly {
		t.Errorf("%+v", got.Spec)
	}
}

func TestACopy(t *testing.T) {
	got := injectFrom(copying, pod(t, shop), Surroundings{})
	if len(got.Spec.InitContainers) != 1 || strings.Join(got.Spec.InitContainers[0].Args, " ") != "copy /usr/lib/hasten /opt/hasten/current" {
		t.Errorf("init containers: %v", got.Spec.InitContainers)
	}
	if len(got.Spec.InitContainers[0].Resources.Limits) != 0 {
		t.Error("a best-effort pod would become burstable")
	}
	if got.Annotations[evictable] != volumeName {
		t.Error("the cluster autoscaler would keep the node for this volume")
	}
	own := pod(t, shop)
	own.Annotations = map[string]string{evictable: "scratch"}
	if got := injectFrom(copying, own, Surroundings{}).Annotations[evictable]; got != "scratch,"+volumeName {
		t.Error(got)
	}
}

func TestWhatIsLeftAlone(t *testing.T) {
	cases := []struct {
		name, pod string
		around    Surroundings
		state     State
		reason    string
	}{
		{"label", `{metadata: {labels: {hasten.dev/inject: disabled}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "opted out"},
		{"annotation", `{metadata: {annotations: {hasten.dev/inject: "false"}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "opted out"},
		{"Windows", `{spec: {os: {name: windows}, containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "not for Linux"},
		{"Windows by selector", `{spec: {nodeSelector: {kubernetes.io/os: windows}, containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "not for Linux"},
		{"arm64", `{spec: {nodeSelector: {kubernetes.io/arch: arm64}, containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "not for amd64"},
		{"arm64 by affinity", `{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]}}}, containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "not for amd64"},
		{"anywhere in a mixed cluster", shop, Surroundings{OtherArchitectures: true}, LeftAlone, "may land on one"},
		{"either of two in a mixed cluster", `{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64, amd64]}]}]}}}, containers: [{name: a}]}}`,
			Surroundings{OtherArchitectures: true}, LeftAlone, "may land on one"},
		{"valueFrom", `{spec: {containers: [{name: a, env: [{name: LD_PRELOAD, valueFrom: {configMapKeyRef: {name: m, key: k}}}]}]}}`, Surroundings{}, LeftAlone, "valueFrom"},
		{"envFrom", `{spec: {containers: [{name: a, envFrom: [{configMapRef: {name: m}}]}]}}`, Surroundings{}, LeftAlone, "envFrom may set"},
		{"NODE_OPTIONS by valueFrom", `{metadata: {annotations: {hasten.dev/only: node}}, spec: {containers: [{name: a, env: [{name: NODE_OPTIONS, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`, Surroundings{}, LeftAlone, "NODE_OPTIONS comes from elsewhere"},
		{"no libraries", shop, Surroundings{NoLibraries: "the claim is not bound"}, LeftAlone, "the claim is not bound; pods that start later"},
		{"volume of the claim, writable", `{spec: {volumes: [{name: hasten-dev-libraries, persistentVolumeClaim: {claimName: hasten-libraries}}], containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "called hasten-dev-libraries"},
		{"loader's folder in use", `{spec: {containers: [{name: a, volumeMounts: [{name: x, mountPath: /opt/hasten-node}]}]}}`, Surroundings{}, LeftAlone, "volume of its own"},
		{"folder in use", `{spec: {containers: [{name: a, volumeMounts: [{name: x, mountPath: /opt/hasten/}]}]}}`, Surroundings{}, LeftAlone, "volume of its own"},
		{"volume's name in use", `{spec: {volumes: [{name: hasten-dev-libraries, configMap: {name: x}}], containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "called hasten-dev-libraries"},
		{"misspelt accelerator", `{metadata: {annotations: {hasten.dev/only: tsl}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, `no accelerator "tsl"`},
		{"nothing left", `{metadata: {annotations: {hasten.dev/only: tls, hasten.dev/without: tls}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "leave no accelerator"},
		{"unknown device", `{metadata: {annotations: {hasten.dev/devices: gpu}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "none of auto"},
		{"unknown container", `{metadata: {annotations: {hasten.dev/containers: b}}, spec: {containers: [{name: a}]}}`, Surroundings{}, LeftAlone, "no such container"},
		{"kill switch", shop, Surroundings{SwitchedOff: true}, Off, "switched off"},
		{"canary of nobody", shop, Surroundings{Namespace: map[string]string{Canary: "0"}}, Stock, "compared with"},
		{"unreadable canary", shop, Surroundings{Namespace: map[string]string{Canary: "ten"}}, Stock, "compared with"},
		{"held canary", shop, Surroundings{Namespace: map[string]string{Canary: "100", Held: "it restarts"}}, HeldState, "it restarts"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := pod(t, c.pod)
			got := inject(before, c.around)
			if State(got.Labels[StateKey]) != c.state || !strings.Contains(got.Annotations[Reasons], c.reason) {
				t.Errorf("%s: %s", got.Labels[StateKey], got.Annotations[Reasons])
			}
			if !reflect.DeepEqual(got.Spec, before.Spec) {
				t.Errorf("the pod was changed: %+v", got.Spec)
			}
		})
	}
}

func TestWhatIsAcceleratedNonetheless(t *testing.T) {
	for name, text := range map[string]string{
		"amd64 in a mixed cluster": `{spec: {nodeSelector: {kubernetes.io/arch: amd64}, containers: [{name: a}]}}`,
		"amd64 by affinity": `{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}]}}}, containers: [{name: a}]}}`,
	} {
		if got := inject(pod(t, text), Surroundings{OtherArchitectures: true}); got.Labels[StateKey] != "accelerated" {
			t.Errorf("%s: %s", name, got.Annotations[Reasons])
		}
	}
	for name, text := range map[string]string{
		"safe envFrom":               `{metadata: {annotations: {hasten.dev/env-from: safe}}, spec: {containers: [{name: a, envFrom: [{secretRef: {name: s}}]}]}}`,
		"envFrom under an own value": `{spec: {containers: [{name: a, env: [{name: LD_PRELOAD, value: /x.so}], envFrom: [{secretRef: {name: s}}]}]}}`,
		"NODE_OPTIONS by valueFrom":  `{spec: {containers: [{name: a, env: [{name: NODE_OPTIONS, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`,
		"host network":               `{spec: {hostNetwork: true, containers: [{name: a}]}}`,
	} {
		if got := inject(pod(t, text), Surroundings{}); got.Labels[StateKey] != "accelerated" {
			t.Errorf("%s: %s", name, got.Annotations[Reasons])
		}
	}
}

// Intel's users find ENOMEM in a log, and hours later the reason (device plugins #319, #1700; OpenShift #122, #145).
func TestWhoeverAsksForQATIsToldOfLockedMemory(t *testing.T) {
	for text, told := range map[string]bool{
		`{spec: {containers: [{name: a, resources: {limits: {qat.intel.com/cy: 1}}}]}}`:                                                     true,
		`{spec: {containers: [{name: a, resources: {limits: {hasten.dev/qat-dc: 1}}, securityContext: {capabilities: {drop: [ALL]}}}]}}`:    true,
		`{spec: {containers: [{name: a, resources: {limits: {qat.intel.com/cy: 1}}, securityContext: {capabilities: {add: [IPC_LOCK]}}}]}}`: false,
		`{spec: {containers: [{name: a, resources: {limits: {qat.intel.com/cy: 1}}, securityContext: {privileged: true}}]}}`:                false,
		`{spec: {containers: [{name: a, resources: {limits: {iaa.intel.com/wq-user-shared: 1, cpu: 1}}}]}}`:                                 false,
	} {
		got := inject(pod(t, text), Surroundings{})
		if strings.Contains(got.Annotations[Reasons], "IPC_LOCK") != told || got.Labels[StateKey] != "accelerated" || Decide(pod(t, text), Surroundings{}).Codes() != nil {
			t.Errorf("%s: %s", text, got.Annotations[Reasons])
		}
	}
}

func TestExistingValuesStayInFront(t *testing.T) {
	for before, after := range map[string]string{
		"/lib/jemalloc.so":         "/lib/jemalloc.so:" + Shim,
		"/a.so /b.so ":             "/a.so /b.so:" + Shim,
		" ":                        Shim,
		"$(MINE)":                  "$(MINE):" + Shim,
		"/odigos/agent.so:" + Shim: "/odigos/agent.so:" + Shim,
	} {
		subject := pod(t, shop)
		subject.Spec.Containers[0].Env = []corev1.EnvVar{{Name: preload, Value: before}}
		if got := value(inject(subject, Surroundings{}).Spec.Containers[0], preload); got != after {
			t.Errorf("%q became %q", before, got)
		}
	}
	node := pod(t, `{metadata: {annotations: {hasten.dev/only: "tls, node"}}, spec: {containers: [{name: a, env: [{name: NODE_OPTIONS, value: --max-old-space-size=100}]}]}}`)
	got := inject(node, Surroundings{})
	if v := value(got.Spec.Containers[0], nodeOptions); v != "--max-old-space-size=100 --require /opt/hasten-node/register.js" {
		t.Error(v)
	}
	if v := value(got.Spec.Containers[0], "HASTEN_DISABLE"); v != "gzip,envoy" {
		t.Error(v)
	}
}

// The file that Node.js must load is made of the pod itself, so it is there on a node without libraries as well.
func TestNodeStartsWithoutItsPlugin(t *testing.T) {
	subject := pod(t, `{metadata: {annotations: {hasten.dev/only: node}}, spec: {containers: [{name: a}]}}`)
	got := inject(subject, Surroundings{})
	item := got.Spec.Volumes[0].DownwardAPI.Items[0]
	if item.FieldRef.FieldPath != "metadata.annotations['hasten.dev/node-loader']" || got.Spec.Containers[0].VolumeMounts[0].MountPath+"/"+item.Path != "/opt/hasten-node/register.js" {
		t.Errorf("%+v, %+v", got.Spec.Volumes, got.Spec.Containers[0].VolumeMounts)
	}
	loader := filepath.Join(t.TempDir(), "register.js")
	if err := os.WriteFile(loader, []byte(got.Annotations[NodeLoader]), 0o644); err != nil {
		t.Fatal(err)
	}
	program := exec.Command("node", "--print", "Object.keys(require.cache).length")
	program.Env = append(os.Environ(), "NODE_OPTIONS=--require "+loader)
	output, err := program.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("no node: run `sudo apt-get install nodejs`")
	}
	if err != nil || string(output) != "0\n" {
		t.Errorf("%v: %s", err, output)
	}
}

func TestContainersAreChosen(t *testing.T) {
	subject := pod(t, `
metadata: {annotations: {hasten.dev/containers: "proxy,web", hasten.dev/devices: qat}}
spec:
  initContainers: [{name: migrate}, {name: proxy, restartPolicy: Always}]
  containers: [{name: web, env: [{name: HASTEN_DEVICES, value: "off"}]}, {name: logger}]
`)
	got := injectFrom(copying, subject, Surroundings{})
	var names []string
	for _, container := range append(got.Spec.InitContainers, got.Spec.Containers...) {
		if value(container, preload) != "" {
			names = append(names, container.Name)
		}
	}
	if !reflect.DeepEqual(names, []string{"proxy", "web"}) {
		t.Error(names)
	}
	if got.Spec.InitContainers[0].Name != copyName {
		t.Error("a sidecar would start before the libraries are there")
	}
	if value(got.Spec.InitContainers[2], "HASTEN_DEVICES") != "qatzip,qat" || value(got.Spec.Containers[0], "HASTEN_DEVICES") != "off" {
		t.Error("devices")
	}
}

// Another webhook may add a container between the two calls of ours.
func TestTwiceIsOnce(t *testing.T) {
	for _, source := range []Source{Node, Copy, Image} {
		t.Run(string(source), func(t *testing.T) { twiceIsOnce(t, Settings{Image: "hasten:1", From: source}) })
	}
}

func twiceIsOnce(t *testing.T, settings Settings) {
	around := Surroundings{Namespace: map[string]string{Canary: "100"}, Request: "one"}
	subject := pod(t, shop)
	subject.Annotations = map[string]string{Only: "tls,node"}
	once := injectFrom(settings, subject, around)
	around.Request = "another"
	if twice := injectFrom(settings, once, around); !reflect.DeepEqual(once, twice) {
		t.Error(difference(once, twice))
	}
	once.Spec.Containers = append(once.Spec.Containers, corev1.Container{Name: "mesh"})
	again := injectFrom(settings, once, around)
	if value(again.Spec.Containers[1], preload) != Shim || len(again.Spec.InitContainers) != len(once.Spec.InitContainers) || len(again.Spec.Volumes) != 2 ||
		!reflect.DeepEqual(again.Spec.Containers[0].VolumeMounts, again.Spec.Containers[1].VolumeMounts) {
		t.Errorf("%+v", again.Spec)
	}
}

func difference(a, b any) string {
	one, _ := json.Marshal(a)
	two, _ := json.Marshal(b)
	return fmt.Sprintf("%s\n%s", one, two)
}

// What the Pod Security Standard "restricted" demands of every container.
func TestTheCopyIsRestricted(t *testing.T) {
	security := injectFrom(copying, pod(t, shop), Surroundings{}).Spec.InitContainers[0].SecurityContext
	if *security.AllowPrivilegeEscalation || !*security.RunAsNonRoot || *security.RunAsUser == 0 || security.Capabilities.Drop[0] != "ALL" ||
		security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !*security.ReadOnlyRootFilesystem {
		t.Errorf("%+v", security)
	}
	own := injectFrom(copying, pod(t, `{spec: {securityContext: {runAsUser: 1000}, containers: [{name: a}]}}`), Surroundings{})
	if own.Spec.InitContainers[0].SecurityContext.RunAsUser != nil {
		t.Error("the pod's user was not kept")
	}
	root := injectFrom(copying, pod(t, `{spec: {securityContext: {runAsUser: 0}, containers: [{name: a}]}}`), Surroundings{})
	if root.Spec.InitContainers[0].SecurityContext.RunAsUser == nil {
		t.Error("root may not run what must not be root: the pod would not start")
	}
}

func TestAGuaranteedPodStaysSo(t *testing.T) {
	got := injectFrom(copying, pod(t, `{spec: {containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}]}}`), Surroundings{})
	resources := got.Spec.InitContainers[0].Resources
	if len(resources.Limits) != 2 || !reflect.DeepEqual(resources.Limits, resources.Requests) {
		t.Errorf("%+v", resources)
	}
}

func TestAnImageVolumeNeedsNoCopy(t *testing.T) {
	subject := pod(t, shop)
	Apply(subject, Decide(subject, Surroundings{}), Settings{Image: "i:1", From: Image})
	if len(subject.Spec.InitContainers) != 0 || subject.Spec.Volumes[0].Image.Reference != "i:1" || subject.Spec.Containers[0].VolumeMounts[0].SubPath != "usr/lib/hasten" ||
		subject.Spec.Containers[0].VolumeMounts[0].MountPath != Libraries {
		t.Errorf("%+v", subject.Spec)
	}
}

// Pods that were drawn at another percentage are of another age, and are not compared.
func TestAPodKnowsByWhichPercentageItWasDrawn(t *testing.T) {
	for text, want := range map[string]string{"100": "100", " 0%": "0", "ten": "0", "400": "100"} {
		around := Surroundings{Namespace: map[string]string{Canary: text}}
		got := inject(pod(t, shop), around)
		if got.Annotations[Drawn] != want {
			t.Errorf("%q: %q", text, got.Annotations[Drawn])
		}
		around.Namespace[Canary] = "50"
		if again := inject(got, around); again.Annotations[Drawn] != want || again.Labels[StateKey] != got.Labels[StateKey] {
			t.Errorf("%q: drawn again, by %q", text, again.Annotations[Drawn])
		}
	}
	if got, said := inject(pod(t, shop), Surroundings{}).Annotations[Drawn]; said {
		t.Errorf("no canary, and drawn by %q", got)
	}
}

func TestACanaryDrawsItsPart(t *testing.T) {
	around := Surroundings{Namespace: map[string]string{Canary: "10%"}}
	drawn := 0
	for i := range 10000 {
		around.Request = fmt.Sprintf("705ab4f5-6393-11e8-b7cc-%012d", i)
		if Decide(pod(t, shop), around).State == Accelerated {
			drawn++
		}
	}
	// Six standard deviations of a binomial distribution around 1000; the numbers are the same in every run.
	if drawn < 820 || drawn > 1180 {
		t.Errorf("%d of 10000", drawn)
	}
}
