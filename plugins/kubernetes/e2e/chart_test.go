//go:build e2e

// Package e2e installs the chart on a real API server, lets it ask the real webhook, and removes it again.
package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	charts "hasten.dev/kubernetes/internal/chart"
	"hasten.dev/kubernetes/internal/inject"
)

const home = "hasten-system"

// root of the repository.
var root = os.Getenv("HASTEN_E2E_ROOT")

var ctx = context.Background()

type chart struct {
	t       *testing.T
	objects []*unstructured.Unstructured
	mapper  meta.RESTMapper
	api     dynamic.Interface
}

func render(t *testing.T, config *rest.Config, api *kubernetes.Clientset, values map[string]any) *chart {
	t.Helper()
	from, err := charts.Load(filepath.Join(root, "packaging/kubernetes/chart"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := charts.Render(from, home, values)
	if err != nil {
		t.Fatalf("the chart cannot be rendered: %v", err)
	}
	result := newChart(t, config, api)
	result.read(text)
	return result
}

func newChart(t *testing.T, config *rest.Config, api *kubernetes.Clientset) *chart {
	return &chart{t: t, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api.Discovery())), api: dynamic.NewForConfigOrDie(config)}
}

// read adds what a text has.
func (c *chart) read(text string) {
	c.t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err == io.EOF {
			return
		} else if err != nil {
			c.t.Fatal(err)
		}
		if object.GetKind() != "" {
			c.objects = append(c.objects, object)
		}
	}
}

func (c *chart) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	c.t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		c.t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.api.Resource(mapping.Resource)
	}
	return c.api.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// apply is `helm upgrade --install` as the API server sees it.
func (c *chart) apply(dryRun ...string) {
	c.t.Helper()
	for _, object := range c.objects {
		_, err := c.resource(object).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "helm", DryRun: dryRun})
		if err != nil {
			c.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

func (c *chart) remove() {
	c.t.Helper()
	for _, object := range c.objects {
		if err := c.resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
			c.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		_, err := c.resource(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) && object.GetKind() != "Deployment" {
			c.t.Errorf("%s %s is still there: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

func namespace(t *testing.T, api *kubernetes.Clientset, name string, labels, annotations map[string]string) {
	t.Helper()
	_, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// start makes a pod as a restricted namespace wants it, and says what became of it.
func start(t *testing.T, api *kubernetes.Clientset, namespace string, dryRun ...string) *corev1.Pod {
	t.Helper()
	no, yes, user := false, true, int64(1000)
	pod, err := api.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &user, ReadOnlyRootFilesystem: &yes,
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}}}},
	}, metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		t.Fatalf("a pod was refused in %s: %v", namespace, err)
	}
	return pod
}

func state(pod *corev1.Pod) inject.State { return inject.State(pod.Labels[inject.StateKey]) }

// outward is an address of this machine that may be an endpoint: one of loopback may not.
func outward(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no address but those of loopback, and an endpoint needs one")
	return ""
}

// serve runs the webhook with the rights that the chart gives it, and no others.
func serve(t *testing.T, config *rest.Config, api *kubernetes.Clientset, more ...string) *exec.Cmd {
	t.Helper()
	answer, err := api.CoreV1().ServiceAccounts(home).CreateToken(ctx, "hasten-webhook", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := kubeconfig(t, config.Host, answer.Status.Token)
	own, address := port(t), outward(t)
	var number int32
	fmt.Sscan(own, &number)
	name, ready := "webhook", true
	_ = api.DiscoveryV1().EndpointSlices(home).Delete(ctx, "hasten-webhook-1", metav1.DeleteOptions{})
	_, err = api.DiscoveryV1().EndpointSlices(home).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hasten-webhook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hasten-webhook"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// What the chart says, but for where it listens here.
	deployment, err := api.AppsV1().Deployments(home).Get(ctx, "hasten-webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	arguments := append(deployment.Spec.Template.Spec.Containers[0].Args,
		"--host", address, "--port", own, "--metrics", "0", "--health", "127.0.0.1:0", "--canary-interval", "1s", "--agent-token", "")
	return begin(t, []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + home, "HASTEN_IMAGE=hasten:1"}, "hasten-k8s", append(arguments, more...)...)
}

func TestTheChartFromInstallationToRemoval(t *testing.T) {
	ran(t)
	config, api := cluster(t, claimControllers)
	namespace(t, api, home, nil, nil)
	labels := map[string]string{inject.Inject: "enabled"}
	namespace(t, api, "shop", labels, nil)
	namespace(t, api, "strict", map[string]string{inject.Inject: "enabled", "pod-security.kubernetes.io/enforce": "restricted"}, nil)
	namespace(t, api, "trial", labels, map[string]string{inject.Canary: "0"})
	namespace(t, api, "plain", nil, nil)
	node(t, api, "one")
	chart := render(t, config, api, nil)
	chart.apply(metav1.DryRunAll)
	chart.apply()

	if got := state(start(t, api, "shop")); got != "" {
		t.Errorf("nobody answers yet, and the pod is %q", got)
	}
	webhook := serve(t, config, api)
	eventually(t, "a pod is accelerated", func() bool { return state(start(t, api, "shop", metav1.DryRunAll)) == inject.Accelerated })
	for name, want := range map[string]inject.State{"shop": inject.Accelerated, "strict": inject.Accelerated, "trial": inject.Stock, "plain": ""} {
		eventually(t, fmt.Sprintf("a pod of %s is %q", name, want), func() bool { return state(start(t, api, name, metav1.DryRunAll)) == want })
		start(t, api, name)
	}
	asksForItself(t, api)
	neverTouches(t, api)
	chart.apply()
	pod := start(t, api, "shop")
	if got := state(pod); got != inject.Accelerated {
		t.Errorf("after an upgrade: %q", got)
	}
	eventually(t, "a scheduler finds a node for a pod with a claim", func() bool {
		found, err := api.CoreV1().Pods("shop").Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && found.Spec.NodeName == "one"
	})
	nobodyWritesToTheLibraries(t, config, api)
	claimsComeAndGo(t, api)
	besideAnotherWebhook(t, api)
	keepsToQuotas(t, api)
	leavesDebuggersAlone(t, api, pod)
	holdsAFailingCanary(t, api)
	toggle(t, api, "off")
	eventually(t, "new pods are left alone", func() bool { return state(start(t, api, "shop", metav1.DryRunAll)) == inject.Off })
	toggle(t, api, "on")
	eventually(t, "new pods are accelerated again", func() bool { return state(start(t, api, "shop", metav1.DryRunAll)) == inject.Accelerated })

	_ = webhook.Process.Kill()
	_ = webhook.Wait()
	if got := state(start(t, api, "shop")); got != "" {
		t.Errorf("the webhook is gone, and the pod is %q", got)
	}
	chart.remove()
	start(t, api, "shop")
	for _, name := range []string{"shop", "strict", "trial", "doubtful"} {
		if err := api.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "nothing is left behind", func() bool {
		claims, err := api.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
		volumes, also := api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		return err == nil && also == nil && len(claims.Items)+len(volumes.Items) == 0
	})
}

// nobodyWritesToTheLibraries: what is in that folder is loaded by pods of all tenants.
func nobodyWritesToTheLibraries(t *testing.T, config *rest.Config, api *kubernetes.Clientset) {
	t.Helper()
	// The API server puts a new policy into force some time after it was made.
	refused := func(what, why string, create func(metav1.CreateOptions) error) {
		t.Helper()
		eventually(t, what+" is refused", func() bool {
			err := create(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), why)
		})
	}
	refused("a pod that may write to the libraries", "readOnly: true only", func(options metav1.CreateOptions) error {
		_, err := api.CoreV1().Pods("plain").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "writer"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "a"}},
			Volumes: []corev1.Volume{{Name: "x", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: inject.Claim}}}},
		}}, options)
		return err
	})
	webhook := rest.CopyConfig(config)
	webhook.Impersonate.UserName = "system:serviceaccount:" + home + ":hasten-webhook"
	rights := kubernetes.NewForConfigOrDie(webhook)
	for name, path := range map[string]string{"hasten-evil": "/etc", "evil": "/var/lib/kubelet/plugins/hasten.dev"} {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
		}}
		refused("a volume of "+path+" as "+name, "its own folder only", func(options metav1.CreateOptions) error {
			_, err := rights.CoreV1().PersistentVolumes().Create(ctx, volume, options)
			return err
		})
	}
}

// neverTouches: in a namespace that is excluded nobody is asked, whatever is labelled.
func neverTouches(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	for _, name := range []string{"kube-system", "kube-public", home} {
		_, err := api.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"hasten.dev/inject":"enabled"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := api.CoreV1().Pods(name).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "core", Labels: map[string]string{inject.Inject: "enabled"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "core", Image: "core"}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || state(pod) != "" || len(pod.Spec.Containers[0].Env) != 0 {
			t.Errorf("a pod of %s: %v, %+v", name, err, pod)
		}
		if _, err := api.CoreV1().PersistentVolumeClaims(name).Get(ctx, inject.Claim, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s has a claim: %v", name, err)
		}
		_, err = api.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"hasten.dev/inject":null}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// asksForItself: a pod may, in a namespace that does not; libraries of nodes come by a claim of the namespace, so it is told to label that.
func asksForItself(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	pod, err := api.CoreV1().Pods("plain").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "chosen", Labels: map[string]string{inject.Inject: "enabled"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || state(pod) != inject.LeftAlone || !strings.Contains(pod.Annotations[inject.Reasons], "hasten.dev/inject=enabled: set it") {
		t.Errorf("%v: it is %q, %s", err, state(pod), pod.Annotations[inject.Reasons])
	}
}

// keepsToQuotas: what is added to a pod needs none of what a quota bounds, but for one claim; where that is refused, the pod starts as it is.
func keepsToQuotas(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	for name, hard := range map[string]corev1.ResourceList{
		"tight":  {"pods": resource.MustParse("10"), "requests.cpu": resource.MustParse("1"), "limits.memory": resource.MustParse("100Mi"), "persistentvolumeclaims": resource.MustParse("1")},
		"closed": {"persistentvolumeclaims": resource.MustParse("0")},
	} {
		namespace(t, api, name, nil, nil)
		quota, err := api.CoreV1().ResourceQuotas(name).Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// As the controller of quotas does, which does not run here.
		quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}
		for resource := range hard {
			quota.Status.Used[resource] = zero.DeepCopy()
		}
		if _, err := api.CoreV1().ResourceQuotas(name).UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err = api.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"hasten.dev/inject":"enabled"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	small := func(name string) *corev1.Pod {
		amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("100Mi")}
		pod, err := api.CoreV1().Pods(name).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatalf("a pod was refused in %s: %v", name, err)
		}
		return pod
	}
	eventually(t, "a pod that takes all of its quota is accelerated", func() bool { return state(small("tight")) == inject.Accelerated })
	eventually(t, "a pod whose namespace may have no claim is left alone, and says so", func() bool {
		pod := small("closed")
		return state(pod) == inject.LeftAlone && strings.Contains(pod.Annotations[inject.Reasons], inject.Claim)
	})
	for _, name := range []string{"tight", "closed"} {
		_, err := api.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"hasten.dev/inject":null}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var zero = resource.MustParse("0")

// leavesDebuggersAlone: what `kubectl debug` puts into a pod is as it was asked for.
func leavesDebuggersAlone(t *testing.T, api *kubernetes.Clientset, pod *corev1.Pod) {
	t.Helper()
	found, err := api.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Spec.EphemeralContainers = append(found.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}})
	after, err := api.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(ctx, pod.Name, found, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if one := after.Spec.EphemeralContainers[0]; len(one.Env)+len(one.VolumeMounts) != 0 {
		t.Errorf("%+v", one)
	}
}

func claimsComeAndGo(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	namespace(t, api, "brief", map[string]string{inject.Inject: "enabled"}, nil)
	bound := func() bool {
		claim, err := api.CoreV1().PersistentVolumeClaims("brief").Get(ctx, inject.Claim, metav1.GetOptions{})
		return err == nil && claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil
	}
	eventually(t, "a new namespace has its claim", bound)
	if err := api.CoreV1().PersistentVolumeClaims("brief").Delete(ctx, inject.Claim, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a claim that somebody deletes comes back", func() bool {
		return bound() && state(start(t, api, "brief", metav1.DryRunAll)) == inject.Accelerated
	})
	_, err := api.CoreV1().Namespaces().Patch(ctx, "brief", types.MergePatchType, []byte(`{"metadata":{"labels":{"hasten.dev/inject":null}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "without the label, the claim and its volume go", func() bool {
		_, one := api.CoreV1().PersistentVolumeClaims("brief").Get(ctx, inject.Claim, metav1.GetOptions{})
		_, two := api.CoreV1().PersistentVolumes().Get(ctx, "hasten-brief", metav1.GetOptions{})
		return apierrors.IsNotFound(one) && apierrors.IsNotFound(two)
	})
}

func toggle(t *testing.T, api *kubernetes.Clientset, word string) {
	t.Helper()
	patch := fmt.Sprintf(`{"data":{"accelerate":%q}}`, word)
	if _, err := api.CoreV1().ConfigMaps(home).Patch(ctx, "hasten-switch", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// holdsAFailingCanary makes pods of both kinds, and the accelerated ones restart.
func holdsAFailingCanary(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	namespace(t, api, "doubtful", map[string]string{inject.Inject: "enabled"}, map[string]string{inject.Canary: "50"})
	for i := range 40 {
		pod := start(t, api, "doubtful")
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "nginx", ImageID: "x"}}}
		if state(pod) == inject.Accelerated {
			pod.Status.ContainerStatuses[0].RestartCount = int32(i + 1)
		}
		// The scheduler writes to it, too.
		pod.ResourceVersion = ""
		if _, err := api.CoreV1().Pods("doubtful").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the canary is held", func() bool {
		found, err := api.CoreV1().Namespaces().Get(ctx, "doubtful", metav1.GetOptions{})
		return err == nil && found.Annotations[inject.Held] != ""
	})
	eventually(t, "no further pod is accelerated", func() bool { return state(start(t, api, "doubtful", metav1.DryRunAll)) == inject.HeldState })
}
