//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hasten.dev/kubernetes/internal/devices"
)

// tree of simulated devices, which e2e/devices.sh has made.
const tree = "/run/hasten-e2e/tree"

// The device manager, the scheduler and the runtime are real. The devices are files.
func TestDevicesOnARealKubelet(t *testing.T) {
	ran(t)
	config, api := cluster(t, podControllers)
	m := newMachine(t, config.Host, api)
	m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "hasten.test/hasten:1")
	m.load(nginx(t).archive(t))
	namespace(t, api, home, nil, nil)
	namespace(t, api, "shop", nil, nil)
	render(t, config, api, map[string]any{
		"image":   map[string]any{"repository": "hasten.test/hasten", "tag": "1"},
		"devices": map[string]any{"enabled": true, "share": 4, "root": tree},
	}).apply()

	t.Cleanup(func() {
		if node, err := api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{}); t.Failed() && err == nil {
			t.Logf("of its devices the node has %v, and gives away %v", node.Status.Capacity, node.Status.Allocatable)
		}
	})
	amounts := func(what string, want map[corev1.ResourceName]string) {
		t.Helper()
		duration(t, what, func() bool {
			node, err := api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			if err != nil {
				return false
			}
			for name, text := range want {
				capacity, allocatable := node.Status.Capacity[name], node.Status.Allocatable[name]
				if capacity.String()+" "+allocatable.String() != text {
					return false
				}
			}
			return true
		})
	}
	// How many there are, and how many can be had. Two share an IOMMU group, and a queue is disabled.
	amounts("devices can be had", map[corev1.ResourceName]string{
		"qat.intel.com/asym": "2 2", "qat.intel.com/dc": "2 2", "qat.intel.com/generic": "2 0", "dlb.intel.com/pf": "1 1",
		"iaa.intel.com/wq-user-shared": "4 4", "iaa.intel.com/wq-user-dedicated": "1 1", "dsa.intel.com/wq-user-shared": "8 4",
	})
	wants := func(name string, resources map[corev1.ResourceName]string) *corev1.Pod {
		return create(t, api, "shop", server(name, func(pod *corev1.Pod) {
			limits := corev1.ResourceList{}
			for name, amount := range resources {
				limits[name] = resource.MustParse(amount)
			}
			pod.Spec.Containers[0].Resources.Limits = limits
			pod.Spec.TerminationGracePeriodSeconds = new(int64)
		}))
	}
	wants("web", map[corev1.ResourceName]string{"qat.intel.com/asym": "2", "iaa.intel.com/wq-user-shared": "1"})
	hasItsDevices(m, running(t, api, "shop", "web"))

	beat := filepath.Join(tree, "sys/kernel/debug/qat_4xxx_0000:6b:00.0/heartbeat/status")
	heartbeat := func(text string) {
		t.Helper()
		if err := os.WriteFile(beat, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	heartbeat("-1\n")
	amounts("a device that dies while it is held is taken back", map[corev1.ResourceName]string{"qat.intel.com/asym": "2 0", "qat.intel.com/dc": "2 2"})
	stays(t, api, "web")
	heartbeat("0\n")
	amounts("and comes back", map[corev1.ResourceName]string{"qat.intel.com/asym": "2 2"})

	// It forgets all plugins. A pod that it starts before it hears of them again fails, whosever plugin that is.
	made := func(socket string) time.Time {
		info, err := os.Stat(socket)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	kubelet := filepath.Join(devices.DefaultFolder, "kubelet.sock")
	before := made(kubelet)
	sockets := func() (others []string) {
		all, _ := filepath.Glob(filepath.Join(devices.DefaultFolder, "*.sock"))
		return slices.DeleteFunc(all, func(path string) bool { return path == kubelet })
	}
	all := len(sockets())
	restarted := time.Now().Truncate(time.Second)
	m.restart()
	duration(t, "a kubelet that restarts hears of devices again", func() bool {
		again := sockets()
		return made(kubelet).After(before) && len(again) == all &&
			!slices.ContainsFunc(again, func(path string) bool { return made(path).Before(made(kubelet)) })
	})
	// The node's status, which the scheduler goes by, is of before until the kubelet has written a new one.
	duration(t, "and gives them away", func() bool {
		node, err := api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		is := func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.LastHeartbeatTime.After(restarted)
		}
		return err == nil && slices.ContainsFunc(node.Status.Conditions, is) &&
			node.Status.Allocatable.Name("qat.intel.com/asym", resource.DecimalSI).Value() == 2 &&
			node.Status.Allocatable.Name("dlb.intel.com/pf", resource.DecimalSI).Value() == 1
	})
	stays(t, api, "web")
	// What is held is held: a second pod waits for it, and gets it when the first is gone.
	wants("next", map[corev1.ResourceName]string{"qat.intel.com/asym": "1"})
	wants("other", map[corev1.ResourceName]string{"qat.intel.com/dc": "1"})
	running(t, api, "shop", "other")
	if next, err := api.CoreV1().Pods("shop").Get(ctx, "next", metav1.GetOptions{}); err != nil || next.Spec.NodeName != "" {
		t.Errorf("a device was given twice: %v", err)
	}
	if err := api.CoreV1().Pods("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running(t, api, "shop", "next")

	if err := api.AppsV1().DaemonSets(home).Delete(ctx, "hasten-devices", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	amounts("without the plugin there is nothing to be had", map[corev1.ResourceName]string{"qat.intel.com/asym": "2 0", "dlb.intel.com/pf": "1 0"})
	stays(t, api, "next")
}

// The whole way of a claim: a slice, a class, a scheduler that chooses by expressions, a kubelet that prepares, a runtime that reads
// what was prepared.
func TestClaimsOnARealKubelet(t *testing.T) {
	ran(t)
	config, api := cluster(t, podControllers+",resourceclaim-controller")
	m := newMachine(t, config.Host, api)
	m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "hasten.test/hasten:1")
	m.load(nginx(t).archive(t))
	namespace(t, api, home, nil, nil)
	namespace(t, api, "shop", nil, nil)
	render(t, config, api, map[string]any{"image": map[string]any{"repository": "hasten.test/hasten", "tag": "1"},
		"devices": map[string]any{"root": tree, "share": 2}, "dra": map[string]any{"enabled": true}}).apply()
	// offered are the devices that are published, and those of them that have a taint.
	offered := func() (all, tainted int) {
		slices, err := api.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, 0
		}
		for _, slice := range slices.Items {
			for _, device := range slice.Spec.Devices {
				all++
				if len(device.Taints) > 0 {
					tainted++
				}
			}
		}
		return all, tainted
	}
	published := func(want, sick int) func() bool {
		return func() bool {
			all, tainted := offered()
			return all == want && tainted == sick
		}
	}
	// Two share an IOMMU group, and a queue is disabled.
	duration(t, "devices are published", published(11, 3))
	publishesForItsOwnNodeOnly(t, config)
	claim := func(name, class, expression string) {
		t.Helper()
		exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: class}
		if expression != "" {
			exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		}
		if _, err := api.ResourceV1().ResourceClaims("shop").Create(ctx, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "one", Exactly: exactly}}}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claim("compression", "hasten-qat", `device.attributes["devices.hasten.dev"].services == "dc" && device.attributes["devices.hasten.dev"].numaNode == 1`)
	for _, name := range []string{"queue", "queue-2", "queue-3"} {
		claim(name, "hasten-iaa", `device.attributes["devices.hasten.dev"].mode == "shared"`)
	}
	holds := func(pod string, names ...string) {
		t.Helper()
		create(t, api, "shop", server(pod, func(pod *corev1.Pod) {
			pod.Spec.TerminationGracePeriodSeconds = new(int64)
			for i := range names {
				pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: names[i], ResourceClaimName: &names[i]})
				pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: names[i]})
			}
		}))
	}
	holds("web", "compression", "queue")
	running(t, api, "shop", "web")
	found := processes(t, "/usr/sbin/nginx")
	if len(found) == 0 {
		t.Fatal("no server runs")
	}
	nodes, _ := filepath.Glob(filepath.Join(found[0], "root/dev/vfio/*"))
	_, err := os.Stat(filepath.Join(found[0], "root/dev/iax/wq1.0"))
	if len(nodes) != 2 || err != nil {
		t.Errorf("%v, %v", nodes, err)
	}
	specs := func() []string {
		all, _ := filepath.Glob("/var/run/cdi/hasten.dev-*.json")
		return all
	}
	if len(specs()) != 2 {
		t.Error(specs())
	}
	beat := filepath.Join(tree, "sys/kernel/debug/qat_4xxx_0000:e8:00.0/heartbeat/status")
	if err := os.WriteFile(beat, []byte("-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	duration(t, "a device that dies has a taint", published(11, 5))
	duration(t, "the pod that has it is told", func() bool {
		return health(t, api, "web", "compression", "the firmware of 0000:e8:00.0 does not answer")
	})
	waits := func(name string) {
		t.Helper()
		time.Sleep(3 * time.Second)
		if pod, err := api.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "" {
			t.Errorf("%s has what nobody may have: %v", name, err)
		}
	}
	claim("compression-2", "hasten-qat", `device.attributes["devices.hasten.dev"].services == "dc"`)
	holds("patient", "compression-2")
	waits("patient")
	m.restart()
	// The driver restarts, too, and prepares nothing twice.
	if err := api.CoreV1().Pods(home).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=dra"}); err != nil {
		t.Fatal(err)
	}
	stays(t, api, "web")
	if err := os.WriteFile(beat, []byte("0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	duration(t, "a device that recovers loses its taint, by a driver that has restarted", published(11, 3))
	duration(t, "and who waited for one like it gets it", func() bool {
		pod, err := api.CoreV1().Pods("shop").Get(ctx, "patient", metav1.GetOptions{})
		return err == nil && ready(pod)
	})
	duration(t, "the pod that has it is told that it is well", func() bool { return health(t, api, "web", "compression", "") })
	// A queue has two shares here.
	holds("second", "queue-2")
	running(t, api, "shop", "second")
	holds("third", "queue-3")
	waits("third")
	asksAsOfADevicePlugin(t, api)
	if err := api.CoreV1().Pods("shop").Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := api.ResourceV1().ResourceClaims("shop").Delete(ctx, "queue-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running(t, api, "shop", "third")
	stays(t, api, "web")
	if err := api.CoreV1().Pods("shop").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	duration(t, "nothing of a claim is left on the node", func() bool { return len(specs()) == 0 })
}

// publishesForItsOwnNodeOnly: whoever has taken a driver's token from a node can offer nothing in the name of others.
func publishesForItsOwnNodeOnly(t *testing.T, config *rest.Config) {
	t.Helper()
	one := rest.CopyConfig(config)
	one.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + home + ":hasten-dra", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {nodeName}}}
	rights := kubernetes.NewForConfigOrDie(one)
	publish := func(node string) error {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: "slice-"}, Spec: resourceapi.ResourceSliceSpec{Driver: "devices.hasten.dev", NodeName: &node,
			Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
		_, err := rights.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	// A policy is in force some time after it was made.
	eventually(t, "a slice of another node is refused", func() bool {
		err := publish("another")
		return err != nil && strings.Contains(err.Error(), "its own node only")
	})
	if err := publish(nodeName); err != nil {
		t.Errorf("a slice of the own node is refused: %v", err)
	}
}

// health says whether the kubelet tells a pod how the device of its claim is: with these words, or well if there are none.
func health(t *testing.T, api *kubernetes.Clientset, name, claim, why string) bool {
	t.Helper()
	pod, err := api.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, status := range pod.Status.ContainerStatuses[0].AllocatedResourcesStatus {
		for _, one := range status.Resources {
			if !strings.HasPrefix(string(status.Name), "claim:"+claim) {
				continue
			}
			if why == "" {
				return one.Health == corev1.ResourceHealthStatusHealthy
			}
			return one.Health == corev1.ResourceHealthStatusUnhealthy && one.Message != nil && *one.Message == why
		}
	}
	return false
}

// asksAsOfADevicePlugin: a spec that knows no claims gets its device by one.
func asksAsOfADevicePlugin(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	create(t, api, "shop", server("old", func(pod *corev1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"qat.intel.com/asym": resource.MustParse("1")}
	}))
	running(t, api, "shop", "old")
	claims, err := api.ResourceV1().ResourceClaims("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range claims.Items {
		if len(one.OwnerReferences) > 0 && one.OwnerReferences[0].Name == "old" && one.Status.Allocation != nil && strings.HasPrefix(one.Status.Allocation.Devices.Results[0].Device, "qat-0000-6b-00-") {
			return
		}
	}
	t.Errorf("no claim was made for it: %+v", claims.Items)
}

// hasItsDevices reads from the node what a container sees.
func hasItsDevices(t *machine, web *corev1.Pod) {
	t.Helper()
	found := processes(t.T, "/usr/sbin/nginx")
	if len(found) == 0 {
		t.Fatal("no server runs")
	}
	// nginx writes over its own environment, so what the runtime was told is read.
	_, id, _ := strings.Cut(web.Status.ContainerStatuses[0].ContainerID, "://")
	container, err := exec.Command(filepath.Join(programs, "ctr"), "--address", t.containerd, "--namespace", "k8s.io", "containers", "info", id).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"QAT0=0000:6b:00.", "QAT1=0000:6b:00."} {
		if !bytes.Contains(container, []byte(`"`+variable)) {
			t.Errorf("%s is not in %s", variable, container)
		}
	}
	for path, want := range map[string]bool{"vfio/vfio": true, "vfio/108": true, "vfio/109": true, "vfio/233": false, "iax/wq1.0": true, "iax/wq1.1": false, "dlb0": false} {
		info, err := os.Stat(filepath.Join(found[0], "root/dev", path))
		if there := err == nil && info.Mode()&os.ModeCharDevice != 0; there != want {
			t.Errorf("/dev/%s: %t", path, there)
		}
	}
}

// stays says that a pod still runs, as it began.
func stays(t *testing.T, api *kubernetes.Clientset, name string) {
	t.Helper()
	pod, err := api.CoreV1().Pods("shop").Get(ctx, name, metav1.GetOptions{})
	if err != nil || pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("%s: %v, %+v", name, err, pod.Status)
	}
}
