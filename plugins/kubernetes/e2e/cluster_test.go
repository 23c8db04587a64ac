//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// Where scripts/e2e-kubernetes.sh has put the programs.
var programs = os.Getenv("HASTEN_E2E_PROGRAMS")

const token = "the-administrator-of-a-cluster-that-lives-for-a-minute"

func port(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// begin starts a program that ends with the test, and shows what it said if the test fails.
func begin(t *testing.T, environment []string, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(programs, name), arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said at the end:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return command
}

// Controllers that bind and protect claims, and collect what has lost its owner.
const claimControllers = "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller," +
	"garbage-collector-controller,namespace-controller"

// And those that make pods, and give them what they need to ask the API server.
const podControllers = claimControllers + ",deployment-controller,replicaset-controller,daemonset-controller,endpointslice-controller," +
	"serviceaccount-controller,root-ca-certificate-publisher-controller,node-lifecycle-controller"

// plane is a real control plane.
type plane struct {
	*testing.T
	config *rest.Config
	api    *kubernetes.Clientset
	server *exec.Cmd
	// again starts the API server anew, with what etcd has.
	again func() *exec.Cmd
}

// cluster is a control plane for those who leave it alone.
func cluster(t *testing.T, controllers string) (*rest.Config, *kubernetes.Clientset) {
	t.Helper()
	p := newPlane(t, controllers)
	return p.config, p.api
}

// newPlane starts one. Without podControllers, nobody makes the accounts that ServiceAccount's admission wants.
func newPlane(t *testing.T, controllers string) *plane {
	t.Helper()
	folder := t.TempDir()
	etcd, peer, secure, address := "http://127.0.0.1:"+port(t), "http://127.0.0.1:"+port(t), port(t), "127.0.0.1"
	admission := []string{"--advertise-address", "10.0.0.1", "--disable-admission-plugins", "ServiceAccount"}
	if strings.HasPrefix(controllers, podControllers) {
		// Pods ask the Service of the API server. No proxy serves its address, so the API server itself does.
		secure, address = "443", "10.0.0.1"
		admission = []string{"--advertise-address", address, "--allow-privileged"}
	}
	begin(t, nil, "etcd", "--data-dir", filepath.Join(folder, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	signer, tokens := filepath.Join(folder, "signer.pem"), filepath.Join(folder, "tokens.csv")
	for name, text := range map[string][]byte{signer: text, tokens: []byte(token + ",admin,1,system:masters\n")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &plane{T: t}
	// Webhooks are reached by the endpoints of their Services, since no proxy serves the addresses of these.
	p.again = func() *exec.Cmd {
		return begin(t, nil, "kube-apiserver", append(admission, "--etcd-servers", etcd, "--secure-port", secure, "--bind-address", address,
			"--cert-dir", filepath.Join(folder, "certs"), "--token-auth-file", tokens, "--authorization-mode", "RBAC",
			"--service-account-issuer", "https://cluster.local", "--service-account-signing-key-file", signer,
			"--service-account-key-file", signer, "--service-cluster-ip-range", "10.0.0.0/24",
			"--enable-aggregator-routing")...)
	}
	p.server = p.again()
	host := "https://" + address + ":" + secure
	kubeconfig := kubeconfig(t, host, token)
	p.config = &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 100, Burst: 200}
	if p.api, err = kubernetes.NewForConfig(p.config); err != nil {
		t.Fatal(err)
	}
	p.answers()
	begin(t, nil, "kube-controller-manager", "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--root-ca-file", filepath.Join(folder, "certs/apiserver.crt"), "--controllers", controllers)
	begin(t, nil, "kube-scheduler", "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port", "0")
	return p
}

func (p *plane) answers() {
	p.Helper()
	eventually(p.T, "the API server is ready", func() bool {
		_, err := p.api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background())
		return err == nil
	})
}

// stop ends the API server as if it had crashed.
func (p *plane) stop() {
	p.Helper()
	_ = p.server.Process.Kill()
	_ = p.server.Wait()
}

// start starts another one.
func (p *plane) start() {
	p.Helper()
	p.server = p.again()
	p.answers()
}

// kubeconfig is a file for whoever has the token.
func kubeconfig(t *testing.T, host, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
		clusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: a, user: {token: %q}}]}`, host, token)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "\t", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// node is one that is ready, of which there is no more than what the API server knows.
func node(t *testing.T, api *kubernetes.Clientset, name string) {
	t.Helper()
	_, err := api.CoreV1().Nodes().Create(context.Background(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("250")},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("250")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server taints a new node until somebody finds it to be ready.
	_, err = api.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal("never happened: " + what)
}
