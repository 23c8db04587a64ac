//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"hasten.dev/kubernetes/internal/inject"
)

// trial is what is known of the commands of the docs that have a text in them. A command of which nothing is known is run, too, and has to
// succeed.
type trial struct {
	of string
	// cannot is why such a command cannot be run here.
	cannot string
	before func()
	after  func(said string)
}

// monitors are two kinds of Prometheus Operator, which the module proxy does not have; without their schemas.
const monitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec: {group: monitoring.coreos.com, scope: Namespaced, names: {kind: ServiceMonitor, plural: servicemonitors},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec: {group: monitoring.coreos.com, scope: Namespaced, names: {kind: PrometheusRule, plural: prometheusrules},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
`

// A newcomer pastes what docs/kubernetes.md says, from the top to the bottom, with the real Helm and the real kubectl.
func TestEveryCommandOfTheDocs(t *testing.T) {
	ran(t)
	plane := newPlane(t, podControllers)
	config, api := plane.config, plane.api
	m := newMachine(t, config.Host, api)
	for _, tag := range []string{"0.1.0", "0.1.1"} {
		m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "registry.example/hasten:"+tag)
	}
	m.load(nginx(t).archive(t))
	kinds := newChart(t, config, api)
	kinds.read(monitors)
	kinds.apply()
	namespace(t, api, "shop", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, nil)
	namespace(t, api, "monitoring", nil, nil)
	shop := &newcomer{T: t, config: config, api: api, folder: desk(t), kubeconfig: kubeconfig(t, config.Host, token)}
	shop.opens()
	before := everything(t, config, api)

	docs, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	trials := shop.trials()
	known := map[string]bool{}
	for _, block := range blocks(t, string(docs)) {
		if block.language == "yaml" {
			shop.run("kubectl --namespace shop apply --dry-run=server -f - <<'END'\n" + block.text + "END")
			continue
		}
		for _, command := range commands(block.text) {
			shop.tries(command, trials, known)
		}
	}
	for _, one := range trials {
		if !known[one.of] {
			t.Errorf("no command of the docs has %q any more: take it off the list", one.of)
		}
	}
	if !shop.named {
		t.Errorf("the docs do not have the name %s any more", example)
	}
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %v", left)
		}
	}()
	duration(t, "nothing of a release is left in the API server", func() bool {
		left = others(everything(t, config, api), before)
		return len(left) == 0
	})
	if gone := others(before, everything(t, config, api)); len(gone) > 0 {
		t.Errorf("what was there before is gone: %v", gone)
	}
}

type block struct{ language, text string }

// blocks are what the docs have to paste. A command in the middle of a sentence would be run by nobody.
func blocks(t *testing.T, docs string) (all []block) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$")
	for _, found := range fence.FindAllStringSubmatch(docs, -1) {
		all = append(all, block{found[1], found[2]})
	}
	for _, hidden := range regexp.MustCompile("`(?:kubectl|helm|skopeo|hasten-k8s) [^\\s`]+ [^`\\n]+`").FindAllString(fence.ReplaceAllString(docs, ""), -1) {
		t.Errorf("%s is a command: put it into a block, where it is tested", hidden)
	}
	if len(all) < 10 {
		t.Errorf("only %d blocks were found", len(all))
	}
	return all
}

// commands of a block, one a line but for those that go on in the next.
func commands(text string) (all []string) {
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// desk is a folder that has what the docs name: the repository, what `make images` has made, and a manifest of one's own.
func desk(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	text, err := yaml.Marshal(metaPod(server("mine", nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "pod.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(folder, "target/images")
	if err := os.MkdirAll(filepath.Dir(images), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"packaging": filepath.Join(root, "packaging"), "target/images": filepath.Dir(os.Getenv("HASTEN_E2E_IMAGE"))} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func metaPod(pod *corev1.Pod) *corev1.Pod {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return pod
}

// newcomer to hasten, whose shop is open.
type newcomer struct {
	*testing.T
	config             *rest.Config
	api                *kubernetes.Clientset
	folder, kubeconfig string
	// servers are the pods of the shop before an upgrade.
	servers string
	named   bool
}

// example is a pod's name in the docs.
const example = "web-7d4b9c6f5-x2x7p"

// opens the shop: a Deployment as it was before, and a pod that cannot be accelerated.
func (n *newcomer) opens() {
	n.Helper()
	replicas, labels := int32(2), map[string]string{"app": "web"}
	_, err := n.api.AppsV1().Deployments("shop").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: server("", nil).Spec},
	}}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	for _, name := range []string{"shop", "monitoring"} {
		eventually(n.T, name+" has what every namespace gets", func() bool {
			_, one := n.api.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			_, two := n.api.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			return one == nil && two == nil
		})
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus-k8s"}}
	if _, err := n.api.CoreV1().ServiceAccounts("monitoring").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		n.Fatal(err)
	}
	eventually(n.T, "the shop is open", func() bool { return len(n.web()) == 2 })
}

// web are the servers of the shop that are ready, if no others are.
func (n *newcomer) web() []corev1.Pod {
	pods, err := n.api.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !ready(&pod) || pod.DeletionTimestamp != nil }) {
		return nil
	}
	return pods.Items
}

// who says which servers there are, and how often they were restarted.
func (n *newcomer) who() string {
	var all []string
	for _, pod := range n.web() {
		all = append(all, fmt.Sprint(pod.UID, pod.Status.ContainerStatuses[0].ContainerID, pod.Status.ContainerStatuses[0].RestartCount))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (n *newcomer) tries(command string, trials []trial, known map[string]bool) {
	n.Helper()
	var own []trial
	for _, one := range trials {
		if strings.Contains(command, one.of) {
			known[one.of] = true
			own = append(own, one)
		}
	}
	for _, one := range own {
		if one.cannot != "" {
			n.Logf("not run, since %s: %s", one.cannot, command)
			return
		}
		if one.before != nil {
			one.before()
		}
	}
	said := n.run(command)
	for _, one := range own {
		if one.after != nil {
			one.after(said)
		}
	}
}

// run does what the docs say, but for the name of a pod, which is another one each time.
func (n *newcomer) run(command string) string {
	n.Helper()
	if strings.Contains(command, example) {
		n.named = true
		command = strings.ReplaceAll(command, example, n.web()[0].Name)
	}
	limited, stop := context.WithTimeout(ctx, 6*time.Minute)
	defer stop()
	shell := exec.CommandContext(limited, "bash", "-euo", "pipefail", "-c", command)
	shell.Dir = n.folder
	shell.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+n.kubeconfig, "HOME="+n.folder)
	begun := time.Now()
	said, err := shell.CombinedOutput()
	n.Logf("$ %s\n%s(after %s)", command, said, time.Since(begun).Round(100*time.Millisecond))
	if err != nil {
		n.Fatalf("%v: %s", err, command)
	}
	return string(said)
}

// dry is what would become of a new pod.
func (n *newcomer) dry() inject.State {
	pod, err := n.api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		n.Fatal(err)
	}
	return state(pod)
}

func (n *newcomer) annotations() map[string]string {
	found, err := n.api.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return found.Annotations
}

func (n *newcomer) says(parts ...string) func(string) {
	return func(said string) {
		n.Helper()
		for _, part := range parts {
			if !regexp.MustCompile(part).MatchString(said) {
				n.Errorf("it does not say %q", part)
			}
		}
	}
}

// disabled says whether running servers are switched off, once each has had something to do.
func (n *newcomer) disabled() bool {
	agent := agentAddress(n.T, n.api)
	for _, pod := range n.web() {
		handshakes(n.T, pod.Status.PodIP+":8443", 64)
	}
	return metric(n.T, agent, `hasten_breaker_state\{program="nginx",accelerator="tls",engine="multibuffer".*namespace="shop"`) == 3*float64(len(n.web()))
}

func (n *newcomer) switched() string {
	found, err := n.api.CoreV1().ConfigMaps(home).Get(ctx, "hasten-switch", metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return found.Data["accelerate"]
}

// release says whether every pod of ours is of one, and whether nothing else has changed by it.
func (n *newcomer) release(tag string) {
	n.Helper()
	pods, err := n.api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		n.Fatal(err)
	}
	for _, pod := range pods.Items {
		if image := pod.Spec.Containers[0].Image; pod.DeletionTimestamp == nil && image != "registry.example/hasten:"+tag {
			n.Errorf("%s is of %s", pod.Name, image)
		}
	}
	if now := n.who(); now != n.servers {
		n.Errorf("the servers were %s, and are %s", n.servers, now)
	}
	if n.switched() != "off" {
		n.Errorf("somebody has switched hasten off, and now it is %q", n.switched())
	}
}

func (n *newcomer) trials() []trial {
	return []trial{
		{of: "skopeo copy", cannot: "it needs a registry; containerd has imported the same archive"},
		{of: "inject=enabled", after: n.says("namespace/shop labeled")},
		{of: "get pods -L hasten.dev/state", after: func(said string) {
			n.says(`web-\S+ +1/1 +Running +0 +\S+ +accelerated`)(said)
			eventually(n.T, "the servers of before are gone", func() bool { return len(n.web()) == 2 })
			for _, pod := range n.web() {
				found := processesOf(n.T, &pod, "/usr/sbin/nginx")
				if state(&pod) != inject.Accelerated || len(found) == 0 {
					n.Errorf("%s is %q, and has %d processes", pod.Name, state(&pod), len(found))
				}
				for _, process := range found {
					if got := mapped(process); got != "libhasten.so libhasten_tls.so libhasten_gzip.so" {
						n.Errorf("%s has %q", process, got)
					}
				}
				handshakes(n.T, pod.Status.PodIP+":8443", 200)
			}
		}},
		{of: "hasten-k8s preview", after: n.says("web", "accelerated")},
		{of: "--dry-run=server", after: n.says("hasten.dev/state: accelerated", "value: "+inject.Shim)},
		{of: "hasten-k8s explain", after: n.says("accelerated", "tls: ", "operations by engines")},
		{of: "reason=HastenLeftAlone", before: func() {
			create(n.T, n.api, "shop", server("odd", func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LD_PRELOAD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['theirs']"}}}}
			}))
			running(n.T, n.api, "shop", "odd")
			eventually(n.T, "the pod is told", func() bool {
				events, err := n.api.CoreV1().Events("shop").List(ctx, metav1.ListOptions{FieldSelector: "reason=HastenLeftAlone"})
				return err == nil && len(events.Items) > 0
			})
		}, after: func(said string) {
			n.says(`pod/odd +web: its LD_PRELOAD comes from elsewhere \(valueFrom\)`)(said)
			gone(n.T, n.api, "shop", "odd")
		}},
		{of: "hasten.dev/canary=10", after: func(string) {
			seen := map[inject.State]bool{}
			eventually(n.T, "pods are drawn", func() bool { seen[n.dry()] = true; return seen[inject.Stock] && seen[inject.Accelerated] })
		}},
		{of: "hasten.dev/promote=2h", after: func(string) {
			if got := n.annotations(); got[inject.Promote] != "2h" || got[inject.Withdraw] != "enabled" || got[inject.Held] != "" {
				n.Error(got)
			}
		}},
		{of: "hasten.dev/canary-", after: func(string) {
			eventually(n.T, "the namespace is as it was", func() bool {
				for key := range n.annotations() {
					if strings.HasPrefix(key, "hasten.dev/") {
						return false
					}
				}
				return n.dry() == inject.Accelerated
			})
		}},
		{of: "monitoring.serviceMonitor.enabled=true", after: func(string) {
			all := dynamic.NewForConfigOrDie(n.config)
			for kind, want := range map[string]int{"servicemonitors": 2, "prometheusrules": 1} {
				found, err := all.Resource(schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: kind}).Namespace(home).List(ctx, metav1.ListOptions{})
				if err != nil || len(found.Items) != want {
					n.Errorf("%s: %v, %+v", kind, err, found)
				}
			}
			answer, err := n.api.CoreV1().ServiceAccounts("monitoring").CreateToken(ctx, "prometheus-k8s", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			if err != nil {
				n.Fatal(err)
			}
			eventually(n.T, "Prometheus may read", func() bool {
				_, status := read(n.T, agentAddress(n.T, n.api), "/metrics", answer.Status.Token)
				return status == http.StatusOK
			})
		}},
		{of: `"accelerate":"off"`, after: func(string) {
			duration(n.T, "all servers of a Deployment are switched off by kubectl", n.disabled)
			eventually(n.T, "new pods are left alone", func() bool { return n.dry() == inject.Off })
		}},
		{of: `"accelerate":"on"`, after: func(string) {
			eventually(n.T, "they are switched on", func() bool { return !n.disabled() })
			eventually(n.T, "new pods are accelerated", func() bool { return n.dry() == inject.Accelerated })
		}},
		{of: "--set image.tag=0.1.1", before: func() {
			toggle(n.T, n.api, "off")
			if n.servers = n.who(); len(n.web()) != 2 {
				n.Fatalf("the shop has %d servers", len(n.web()))
			}
		}, after: func(string) { n.release("0.1.1") }},
		{of: "helm history", after: n.says("superseded", "deployed")},
		{of: "helm rollback", after: func(string) {
			n.release("0.1.0")
			toggle(n.T, n.api, "on")
			eventually(n.T, "servers that were switched off before two upgrades are on again", func() bool { return !n.disabled() })
		}},
		{of: "hasten.dev/inject-"},
		{of: "helm uninstall", after: func(string) {
			if now := n.who(); now != n.servers {
				n.Errorf("the servers were %s, and are %s", n.servers, now)
			}
			for _, pod := range n.web() {
				handshakes(n.T, pod.Status.PodIP+":8443", 64)
			}
		}},
		{of: "delete namespace hasten-system", after: func(string) {
			if _, err := n.api.CoreV1().Namespaces().Get(ctx, home, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				n.Errorf("it is still there: %v", err)
			}
		}},
	}
}

// passing are kinds of what comes and goes by itself.
var passing = []string{"events", "pods", "replicasets", "leases", "endpointslices", "endpoints", "controllerrevisions", "componentstatuses"}

// everything that the API server has, by kind and name.
func everything(t *testing.T, config *rest.Config, api *kubernetes.Clientset) map[string]bool {
	t.Helper()
	lists, err := api.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all, found := dynamic.NewForConfigOrDie(config), map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if slices.Contains(passing, kind.Name) || !slices.Contains(kind.Verbs, "list") {
				continue
			}
			objects, err := all.Resource(group.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", kind.Name, err)
			}
			for _, object := range objects.Items {
				found[kind.Name+" "+object.GetNamespace()+"/"+object.GetName()] = true
			}
		}
	}
	return found
}

// others are those of the first that the second does not have.
func others(all, known map[string]bool) (rest []string) {
	for name := range all {
		if !known[name] {
			rest = append(rest, name)
		}
	}
	return rest
}
