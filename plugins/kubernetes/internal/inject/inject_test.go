package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var settings = Settings{Image: "registry.example/hasten:1"}

func pod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func inject(pod *corev1.Pod, around Surroundings) *corev1.Pod {
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
	if len(got.Spec.InitContainers) != 1 || strings.Join(got.Spec.InitContainers[0].Args, " ") != "copy /usr/lib/hasten /opt/hasten" {
		t.Errorf("init containers: %v", got.Spec.InitContainers)
	}
	if len(got.Spec.InitContainers[0].Resources.Limits) != 0 {
		t.Error("a best-effort pod would become burstable")
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
	if v := value(got.Spec.Containers[0], nodeOptions); v != "--max-old-space-size=100 --require /opt/hasten/node/register.js" {
		t.Error(v)
	}
	if args := got.Spec.InitContainers[0].Args; args[len(args)-1] != "--strict" {
		t.Error("Node.js would not start if the copy failed")
	}
	if v := value(got.Spec.Containers[0], "HASTEN_DISABLE"); v != "gzip,envoy" {
		t.Error(v)
	}
}

func TestContainersAreChosen(t *testing.T) {
	subject := pod(t, `
metadata: {annotations: {hasten.dev/containers: "proxy,web", hasten.dev/devices: qat}}
spec:
  initContainers: [{name: migrate}, {name: proxy, restartPolicy: Always}]
  containers: [{name: web, env: [{name: HASTEN_DEVICES, value: "off"}]}, {name: logger}]
`)
	got := inject(subject, Surroundings{})
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
	around := Surroundings{Namespace: map[string]string{Canary: "100"}, Request: "one"}
	once := inject(pod(t, shop), around)
	around.Request = "another"
	if twice := inject(once, around); !reflect.DeepEqual(once, twice) {
		t.Error(difference(once, twice))
	}
	once.Spec.Containers = append(once.Spec.Containers, corev1.Container{Name: "mesh"})
	again := inject(once, around)
	if value(again.Spec.Containers[1], preload) != Shim || len(again.Spec.InitContainers) != 1 || len(again.Spec.Volumes) != 1 {
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
	security := inject(pod(t, shop), Surroundings{}).Spec.InitContainers[0].SecurityContext
	if *security.AllowPrivilegeEscalation || !*security.RunAsNonRoot || *security.RunAsUser == 0 || security.Capabilities.Drop[0] != "ALL" ||
		security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !*security.ReadOnlyRootFilesystem {
		t.Errorf("%+v", security)
	}
	own := inject(pod(t, `{spec: {securityContext: {runAsUser: 1000}, containers: [{name: a}]}}`), Surroundings{})
	if own.Spec.InitContainers[0].SecurityContext.RunAsUser != nil {
		t.Error("the pod's user was not kept")
	}
	root := inject(pod(t, `{spec: {securityContext: {runAsUser: 0}, containers: [{name: a}]}}`), Surroundings{})
	if root.Spec.InitContainers[0].SecurityContext.RunAsUser == nil {
		t.Error("root may not run what must not be root: the pod would not start")
	}
}

func TestAGuaranteedPodStaysSo(t *testing.T) {
	got := inject(pod(t, `{spec: {containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}]}}`), Surroundings{})
	resources := got.Spec.InitContainers[0].Resources
	if len(resources.Limits) != 2 || !reflect.DeepEqual(resources.Limits, resources.Requests) {
		t.Errorf("%+v", resources)
	}
}

func TestAnImageVolumeNeedsNoCopy(t *testing.T) {
	subject := pod(t, shop)
	Apply(subject, Decide(subject, Surroundings{}), Settings{Image: "i:1", ImageVolumes: true})
	if len(subject.Spec.InitContainers) != 0 || subject.Spec.Volumes[0].Image.Reference != "i:1" || subject.Spec.Containers[0].VolumeMounts[0].SubPath != "usr/lib/hasten" {
		t.Errorf("%+v", subject.Spec)
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
