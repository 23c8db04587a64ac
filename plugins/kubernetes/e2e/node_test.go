//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	nodeName = "here"
	// cgroup of everything that runs in pods.
	cgroup = "hasten-e2e"
)

// machine is this one as a node: a real containerd with a real runc, and a real kubelet.
type machine struct {
	*testing.T
	containerd string
	// starts a kubelet anew.
	again func() *exec.Cmd
	agent *exec.Cmd
}

func newMachine(t *testing.T, host string, api *kubernetes.Clientset) *machine {
	t.Helper()
	if os.Getenv("HASTEN_E2E_NAMESPACES") == "" {
		t.Fatal("this needs namespaces of its own: run it by scripts/e2e-kubernetes.sh")
	}
	// In memory: what containers have mounted there goes with these namespaces.
	folder := "/run/hasten-e2e"
	m := &machine{T: t, containerd: filepath.Join(folder, "containerd.sock")}
	m.controlGroups()
	m.runtime(folder)
	pause := image{name: "hasten.test/pause:1", command: []string{"/" + filepath.Join(programs, "pause")[1:]}, files: []string{filepath.Join(programs, "pause")}}
	m.load(pause.archive(t))
	m.kubelet(folder, host)
	eventually(t, "the node is ready", func() bool {
		node, err := api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	})
	return m
}

// controlGroups are made in each hierarchy that there is, and go when nobody is in them any more.
func (m *machine) controlGroups() {
	m.Helper()
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		roots = []string{"/sys/fs/cgroup/cgroup.procs"}
	}
	for _, root := range roots {
		group := filepath.Join(filepath.Dir(root), cgroup)
		if err := os.MkdirAll(group, 0o755); err != nil {
			m.Fatal(err)
		}
		// A new group of processors and memory nodes has none in the first version.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if all, err := os.ReadFile(filepath.Join(filepath.Dir(root), name)); err == nil {
				_ = os.WriteFile(filepath.Join(group, name), all, 0o644)
			}
		}
	}
}

func (m *machine) write(path, text string) string {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
	return path
}

func (m *machine) runtime(folder string) {
	m.Helper()
	m.write(filepath.Join(folder, "net/10-bridge.conflist"), `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true,
		"ipam": {"type": "host-local", "dataDir": "`+folder+`/addresses", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`)
	config := m.write(filepath.Join(folder, "containerd.toml"), fmt.Sprintf(`version = 3
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
address = "%[2]s"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "hasten.test/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
conf_dir = "%[1]s/net"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "runc"
SystemdCgroup = false
`, folder, m.containerd))
	begin(m.T, []string{"PATH=" + programs + ":" + os.Getenv("PATH")}, "containerd", "--config", config)
	eventually(m.T, "containerd answers", func() bool { return m.ctr("version") == nil })
}

// ctr is the client of containerd, in the namespace of the kubelet.
func (m *machine) ctr(arguments ...string) error {
	command := exec.Command(filepath.Join(programs, "ctr"), append([]string{"--address", m.containerd, "--namespace", "k8s.io"}, arguments...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func (m *machine) load(archive string, options ...string) {
	m.Helper()
	if err := m.ctr(append(append([]string{"images", "import", "--local"}, options...), archive)...); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) kubelet(folder, host string) {
	m.Helper()
	config := m.write(filepath.Join(folder, "kubelet.yaml"), fmt.Sprintf(`
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%s
containerRuntimeEndpoint: unix://%s
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.inodesFree: "0%%"}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
resolvConf: ""
volumeStatsAggPeriod: 0s
`, cgroup, m.containerd))
	admin := kubeconfig(m.T, host, token)
	m.again = func() *exec.Cmd {
		return begin(m.T, []string{"PATH=" + programs + ":" + os.Getenv("PATH")}, "kubelet", "--config", config, "--kubeconfig", admin,
			"--hostname-override", nodeName, "--node-ip", "10.0.0.1", "--cert-dir", filepath.Join(folder, "pki"))
	}
	m.agent = m.again()
}

// restart ends the kubelet as if it had crashed, and starts another one.
func (m *machine) restart() {
	m.Helper()
	_ = m.agent.Process.Kill()
	_ = m.agent.Wait()
	m.agent = m.again()
}

// processes of a program that run in pods.
func processes(t *testing.T, program string) []string {
	t.Helper()
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, path := range paths {
		target, _ := os.Readlink(path)
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if target == program && bytes.Contains(groups, []byte(cgroup)) {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}

// processesOf a pod, of a program. Those of a pod that was deleted by force end some time after that.
func processesOf(t *testing.T, pod *corev1.Pod, program string) (own []string) {
	t.Helper()
	for _, process := range processes(t, program) {
		if groups, _ := os.ReadFile(filepath.Join(process, "cgroup")); bytes.Contains(groups, []byte(pod.UID)) {
			own = append(own, process)
		}
	}
	return own
}

// running waits until the pod is ready, and gives it.
func running(t *testing.T, api *kubernetes.Clientset, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	defer func() {
		if pod != nil && !ready(pod) {
			t.Logf("%s: %s %+v", name, pod.Status.Phase, pod.Status.ContainerStatuses)
		}
	}()
	eventually(t, name+" is ready", func() bool {
		found, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		pod = found
		return ready(pod)
	})
	return pod
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// mapped says which of hasten's libraries a process has.
func mapped(process string) string {
	text, _ := os.ReadFile(filepath.Join(process, "maps"))
	var found []string
	for _, name := range []string{"libhasten.so", "libhasten_tls.so", "libhasten_gzip.so"} {
		if strings.Contains(string(text), "/"+name) {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// duration of what happens eventually. It is logged, and nobody is held to it: the machine may be busy.
func duration(t *testing.T, what string, is func() bool) {
	t.Helper()
	begun := time.Now()
	eventually(t, what, is)
	note(t, what, time.Since(begun))
}
