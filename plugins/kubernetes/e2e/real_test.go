//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hasten.dev/kubernetes/internal/auth"
	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/rollout"
)

const nginxConfiguration = `daemon off; worker_processes 1; pid /tmp/nginx.pid; error_log stderr;
events { worker_connections 512; }
http {
    access_log off; client_body_temp_path /tmp/a; proxy_temp_path /tmp/b; fastcgi_temp_path /tmp/c; uwsgi_temp_path /tmp/d; scgi_temp_path /tmp/e;
    server { listen 8443 ssl; ssl_certificate /etc/tls.crt; ssl_certificate_key /etc/tls.key; ssl_session_tickets off; ssl_session_cache off; }
}
`

// nginx as Debian has it, with a configuration and a certificate.
func nginx(t *testing.T) *image {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"shop"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	result := &image{name: "hasten.test/nginx:1", command: []string{"/usr/sbin/nginx", "-e", "stderr", "-c", "/etc/nginx.conf"}, texts: map[string]string{
		"/etc/nginx.conf": nginxConfiguration,
		"/etc/tls.crt":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"/etc/tls.key":    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}}
	result.fromDebian(t, "/usr/sbin/nginx")
	return result
}

// server is a pod of nginx as a restricted namespace wants it.
func server(name string, change func(*corev1.Pod)) *corev1.Pod {
	no, yes, user := false, true, int64(1000)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{{Name: "web", Image: "hasten.test/nginx:1", ImagePullPolicy: corev1.PullIfNotPresent,
			VolumeMounts:   []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &user, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		}},
	}}
	if change != nil {
		change(pod)
	}
	return pod
}

func create(t *testing.T, api *kubernetes.Clientset, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := api.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// handshakes makes full handshakes from many connections at once, and says how many.
func handshakes(t *testing.T, address string, count int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(count))
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				connection, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
				if err != nil {
					t.Error(err)
					return
				}
				_ = connection.Close()
			}
		})
	}
	all.Wait()
}

// unverified is for servers whose certificate nobody vouches for.
var unverified = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// read is what an agent says to whom has a token, and the status; 0 if it does not answer.
func read(t *testing.T, address, path, token string) (text []byte, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := unverified.Do(request)
	if err != nil {
		return nil, 0
	}
	defer answer.Body.Close()
	text, _ = io.ReadAll(answer.Body)
	return text, answer.StatusCode
}

// metric is the sum of the series of an address that the expression finds.
func metric(t *testing.T, address, expression string) float64 {
	t.Helper()
	text, status := read(t, address, "/metrics", token)
	if status != http.StatusOK {
		return 0
	}
	sum := 0.0
	for _, found := range regexp.MustCompile(`(?m)^`+expression+`.* ([-0-9.e+]+)$`).FindAllSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(string(found[1]), 64)
		sum += value
	}
	return sum
}

// The whole way: the chart is installed, its own pods run, a stock nginx of a labelled namespace is accelerated, counted,
// switched off and on, and starts in any case.
func TestAStockServerOnARealNode(t *testing.T) {
	ran(t)
	plane := newPlane(t, podControllers)
	config, api := plane.config, plane.api
	m := newMachine(t, config.Host, api)
	m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "hasten.test/hasten:1")
	stock := nginx(t)
	m.load(stock.archive(t))
	stock.name, stock.env = "hasten.test/preloading:1", []string{"LD_PRELOAD=/lib/x86_64-linux-gnu/libdl.so.2"}
	m.load(stock.archive(t))
	m.load(alpine(t, stock).archive(t))
	namespace(t, api, home, nil, nil)
	chart := render(t, config, api, map[string]any{"image": map[string]any{"repository": "hasten.test/hasten", "tag": "1"}, "webhook": map[string]any{"replicas": 1},
		"agent": map[string]any{"runtimeSocket": m.containerd}})
	chart.apply()
	duration(t, "webhook and agent are ready", func() bool {
		deployment, one := api.AppsV1().Deployments(home).Get(ctx, "hasten-webhook", metav1.GetOptions{})
		daemons, two := api.AppsV1().DaemonSets(home).Get(ctx, "hasten-agent", metav1.GetOptions{})
		return one == nil && two == nil && deployment.Status.ReadyReplicas == 1 && daemons.Status.NumberReady == 1
	})
	namespace(t, api, "shop", map[string]string{inject.Inject: "enabled", "pod-security.kubernetes.io/enforce": "restricted"}, nil)
	duration(t, "the namespace has its claim", func() bool {
		claim, err := api.CoreV1().PersistentVolumeClaims("shop").Get(ctx, inject.Claim, metav1.GetOptions{})
		return err == nil && claim.Status.Phase == corev1.ClaimBound
	})
	eventually(t, "pods are accelerated", func() bool {
		pod, err := api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && state(pod) == inject.Accelerated
	})

	create(t, api, "shop", server("web", nil))
	web := running(t, api, "shop", "web")
	for _, process := range processes(t, "/usr/sbin/nginx") {
		if got := mapped(process); got != "libhasten.so libhasten_tls.so libhasten_gzip.so" {
			t.Errorf("%s has %q", process, got)
		}
	}
	agent := agentAddress(t, api)
	countsHandshakes(t, web, agent)
	tellsNobodyElse(t, api, agent)
	explains(t, config.Host)
	showsItOnTheNode(t)
	runsWithoutLanes(t, api, agent)
	tellsOfAPreloadThatIsReplaced(t, api)
	runsUnderMusl(t, api)
	switchesARunningPod(t, api, web, agent)
	comparesCosts(t, api, agent)
	upgradesWhilePodsRun(t, config, api, web, m)
	agent = agentAddress(t, api)
	outlivesTheAPIServer(t, plane, web, agent)
	startsWithoutAnything(t, api, chart)
}

// tellsNobodyElse: the API server says who may read.
func tellsNobodyElse(t *testing.T, api *kubernetes.Clientset, agent string) {
	t.Helper()
	account := func(namespace, name string, audiences ...string) string {
		t.Helper()
		answer, err := api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Token
	}
	tenant, reader, webhook := account("shop", "default"), account(home, "hasten-reader"), account(home, "hasten-webhook", auth.Audience)
	for _, c := range []struct {
		who, token, path string
		want             int
	}{
		{"nobody", "", "/metrics", 401}, {"a forger", "forged", "/facts", 401}, {"a tenant", tenant, "/metrics", 403}, {"a tenant", tenant, "/cpu?namespace=shop", 403},
		{"a reader", reader, "/metrics", 200}, {"a reader", reader, "/facts", 200}, {"a reader", reader, "/cpu", 403},
		{"the webhook", webhook, "/cpu?namespace=shop", 200}, {"the webhook", webhook, "/facts", 403},
	} {
		if text, got := read(t, agent, c.path, c.token); got != c.want {
			t.Errorf("%s reads %s: %d instead of %d: %s", c.who, c.path, got, c.want, text)
		}
	}
	// In the clear, Go's server says so, and nothing else.
	if answer, err := http.Get("http://" + agent + "/metrics"); err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", answer.Status)
		}
	}
}

// comparesCosts: the agent reads from the real control groups what the pods of a canary have used.
func comparesCosts(t *testing.T, api *kubernetes.Clientset, agent string) {
	t.Helper()
	namespace(t, api, "trial", map[string]string{inject.Inject: "enabled", "pod-security.kubernetes.io/enforce": "restricted"}, map[string]string{inject.Canary: "0"})
	eventually(t, "pods are drawn", func() bool {
		pod, err := api.CoreV1().Pods("trial").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && state(pod) == inject.Stock
	})
	create(t, api, "trial", server("sibling", nil))
	sibling := running(t, api, "trial", "sibling")
	if state(sibling) != inject.Stock {
		t.Errorf("it is %q", state(sibling))
	}
	handshakes(t, sibling.Status.PodIP+":8443", 1000)
	duration(t, "the agent says what a pod of a canary costs", func() bool {
		text, _ := read(t, agent, "/cpu?namespace=trial", token)
		var costs map[types.UID]rollout.Cost
		return json.Unmarshal(text, &costs) == nil && len(costs) == 1 && costs[sibling.UID].CPU > 0.05 && costs[sibling.UID].CPU < costs[sibling.UID].Seconds*4
	})
	gone(t, api, "trial", "sibling")
}

// gap is for how long the API server is gone.
const gap = time.Minute

// outlivesTheAPIServer: for a minute, nobody can ask it anything. Pods serve, and are counted; the last word of the kill switch holds,
// for processes that begin meanwhile, too; and afterwards all goes on as if nothing had been.
func outlivesTheAPIServer(t *testing.T, plane *plane, web *corev1.Pod, agent string) {
	t.Helper()
	address, api := web.Status.PodIP+":8443", plane.api
	disabled := func() bool {
		handshakes(t, address, 64)
		return metric(t, agent, `hasten_breaker_state\{program="nginx",accelerator="tls",engine="multibuffer".*namespace="shop"`) == 3
	}
	toggle(t, api, "off")
	eventually(t, "it is switched off", disabled)
	counted := func() float64 {
		return metric(t, agent, `hasten_handshakes_total\{program="nginx",accelerator="tls",result="finished",namespace="shop",pod="web",container="web"\}`)
	}
	before := counted()
	plane.stop()
	gone := time.Now()
	// A worker that begins meanwhile has not heard of the switch.
	reload(t)
	for time.Since(gone) < gap {
		handshakes(t, address, 64)
		if _, status := read(t, agent, "/metrics", token); status != http.StatusOK {
			t.Errorf("after %s the agent's metrics are refused: %d", time.Since(gone).Round(time.Second), status)
		}
		time.Sleep(5 * time.Second)
	}
	if !disabled() {
		t.Error("without an API server the kill switch has lost its word")
	}
	if after := counted(); after < before+64*5 {
		t.Errorf("handshakes were not counted: %.0f, then %.0f", before, after)
	}
	plane.start()
	duration(t, "after the API server's return, pods are left alone, as the switch says", func() bool {
		pod, err := api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && state(pod) == inject.Off
	})
	toggle(t, api, "on")
	duration(t, "after the API server's return, a running pod is switched on", func() bool { return !disabled() })
	duration(t, "and new pods are accelerated", func() bool {
		pod, err := api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && state(pod) == inject.Accelerated
	})
	for _, pods := range []string{"shop", home} {
		all, err := api.CoreV1().Pods(pods).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range all.Items {
			for _, status := range pod.Status.ContainerStatuses {
				// The webhook gives up its leadership, and begins anew, when it cannot renew it. Answers are not lost: nobody asks.
				if status.RestartCount != 0 && status.Name != "webhook" {
					t.Errorf("%s was restarted", pod.Name)
				}
			}
		}
	}
}

// reload lets each master of nginx replace its workers.
func reload(t *testing.T) {
	t.Helper()
	masters := 0
	for _, process := range processes(t, "/usr/sbin/nginx") {
		title, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && bytes.Contains(title, []byte("master process")) {
			masters++
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
	}
	if masters == 0 {
		t.Fatal("no master was found")
	}
}

func agentAddress(t *testing.T, api *kubernetes.Clientset) string {
	t.Helper()
	pods, err := api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=agent"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	return pods.Items[0].Status.PodIP + ":9469"
}

func countsHandshakes(t *testing.T, web *corev1.Pod, agent string) {
	t.Helper()
	const count = 2000
	handshakes(t, web.Status.PodIP+":8443", count)
	duration(t, "every handshake is counted, with the names of the pod", func() bool {
		return metric(t, agent, `hasten_handshakes_total\{program="nginx",accelerator="tls",result="finished",namespace="shop",pod="web",container="web"\}`) >= count
	})
	batched := metric(t, agent, `hasten_ops_total\{program="nginx",accelerator="tls",op="p-256-sign",engine="multibuffer",result="ok",namespace="shop",pod="web",container="web"\}`)
	t.Logf("%.0f of %d signatures were made in batches", batched, count)
	if batched == 0 && hasLanes() {
		t.Error("none was")
	}
}

// explains asks as an operator does, through the API server.
func explains(t *testing.T, host string) {
	t.Helper()
	command := exec.Command(filepath.Join(programs, "hasten-k8s"), "explain", "-n", "shop", "pod/web")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig(t, host, token))
	text, err := command.CombinedOutput()
	t.Logf("%v\n%s", err, text)
	for _, part := range []string{"pod/web: accelerated\n", "node/" + nodeName, "tls: ", "counters", "web: nginx, tls", "operations by engines"} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("it does not say %q", part)
		}
	}
}

// showsItOnTheNode: `hasten top` there shows the batches, as an administrator of the node sees them.
func showsItOnTheNode(t *testing.T) {
	t.Helper()
	output, err := exec.Command(os.Getenv("HASTEN_E2E_HASTEN"), "top", "--once").CombinedOutput()
	t.Logf("%v\n%s", err, output)
	if err != nil || !bytes.Contains(output, []byte("nginx, process")) || hasLanes() && !regexp.MustCompile(`p-256-sign +[1-9]`).Match(output) {
		t.Errorf("hasten top does not show the server's batches")
	}
}

// runsWithoutLanes: a node whose processor has no AVX-512 runs the same pod, with less of a gain. The processor is made to look so.
func runsWithoutLanes(t *testing.T, api *kubernetes.Clientset, agent string) {
	t.Helper()
	create(t, api, "shop", server("old", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HASTEN_CPU_DISABLE_IFMA", Value: "1"}}
	}))
	handshakes(t, running(t, api, "shop", "old").Status.PodIP+":8443", 500)
	duration(t, "handshakes of a pod without AVX-512 are counted", func() bool {
		return metric(t, agent, `hasten_handshakes_total\{program="nginx",accelerator="tls",result="finished",namespace="shop",pod="old",container="web"\}`) >= 500
	})
	if batched := metric(t, agent, `hasten_ops_total\{program="nginx",accelerator="tls",op="p-256-sign",engine="multibuffer",result="ok",namespace="shop",pod="old",container="web"\}`); batched != 0 {
		t.Logf("%.0f signatures were made in batches nevertheless", batched)
	}
	gone(t, api, "shop", "old")
}

// upgradesWhilePodsRun: another image, and back to the one before. Pods go on, and so do their connections.
func upgradesWhilePodsRun(t *testing.T, config *rest.Config, api *kubernetes.Clientset, web *corev1.Pod, m *machine) {
	t.Helper()
	m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "hasten.test/hasten:2")
	before := libraries(t, web)
	for _, tag := range []string{"2", "1"} {
		render(t, config, api, map[string]any{"image": map[string]any{"repository": "hasten.test/hasten", "tag": tag}, "webhook": map[string]any{"replicas": 1},
			"agent": map[string]any{"runtimeSocket": m.containerd}}).apply()
		duration(t, "release "+tag+" takes the place of the other", func() bool {
			// All the while.
			handshakes(t, web.Status.PodIP+":8443", 32)
			pods, err := api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) != 2 {
				return false
			}
			for _, pod := range pods.Items {
				if !ready(&pod) || pod.Spec.Containers[0].Image != "hasten.test/hasten:"+tag {
					return false
				}
			}
			return true
		})
		if now := libraries(t, web); now != before {
			t.Errorf("the libraries of running processes were %q, and are %q", before, now)
		}
		// Who starts now is accelerated as well.
		eventually(t, "pods are accelerated", func() bool {
			pod, err := api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && state(pod) == inject.Accelerated
		})
	}
	now, err := api.CoreV1().Pods("shop").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || now.Status.ContainerStatuses[0].RestartCount != 0 || now.Status.ContainerStatuses[0].ContainerID != web.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("it was restarted: %v", err)
	}
}

// libraries that a pod's servers have, by process.
func libraries(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	text := ""
	for _, process := range processesOf(t, pod, "/usr/sbin/nginx") {
		text += filepath.Base(process) + " " + mapped(process) + "\n"
	}
	return text
}

func tellsOfAPreloadThatIsReplaced(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	create(t, api, "shop", server("own", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "hasten.test/preloading:1" }))
	running(t, api, "shop", "own")
	eventually(t, "the pod is told", func() bool {
		events, err := api.CoreV1().Events("shop").List(ctx, metav1.ListOptions{FieldSelector: "reason=HastenPreloadReplaced"})
		return err == nil && len(events.Items) == 1 && events.Items[0].InvolvedObject.Name == "own"
	})
	gone(t, api, "shop", "own")
}

func gone(t *testing.T, api *kubernetes.Clientset, namespace, name string) {
	t.Helper()
	if err := api.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func() bool {
		_, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// alpine is nginx of Alpine on musl, as scripts/musl-image.sh brings it, with the configuration of another image.
func alpine(t *testing.T, like *image) *image {
	t.Helper()
	result := &image{name: "hasten.test/musl:1", command: like.command, texts: like.texts, root: os.Getenv("HASTEN_E2E_MUSL")}
	for _, pattern := range []string{"lib/*", "usr/lib/*", "usr/sbin/nginx"} {
		found, err := filepath.Glob(filepath.Join(result.root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no %s", result.root, pattern)
		}
		result.files = append(result.files, found...)
	}
	return result
}

// runsUnderMusl: the same variable, the same volume, and other libraries, which the shim chooses.
func runsUnderMusl(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	create(t, api, "shop", server("musl", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "hasten.test/musl:1" }))
	pod := running(t, api, "shop", "musl")
	handshakes(t, pod.Status.PodIP+":8443", 100)
	all := processesOf(t, pod, "/usr/sbin/nginx")
	count := 0
	for _, process := range all {
		maps, _ := os.ReadFile(filepath.Join(process, "maps"))
		if bytes.Contains(maps, []byte("/musl/libhasten_tls.so")) {
			count++
		}
	}
	if count != len(all) || count == 0 {
		t.Errorf("%d of %d processes have the libraries for musl", count, len(all))
	}
	gone(t, api, "shop", "musl")
}

// hasLanes says whether this processor can batch signatures.
func hasLanes() bool {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return bytes.Contains(text, []byte("avx512ifma"))
}

func switchesARunningPod(t *testing.T, api *kubernetes.Clientset, web *corev1.Pod, agent string) {
	t.Helper()
	address := web.Status.PodIP + ":8443"
	disabled := func() float64 {
		// A process learns of it with its next handshake.
		handshakes(t, address, 64)
		return metric(t, agent, `hasten_breaker_state\{program="nginx",accelerator="tls",engine="multibuffer".*namespace="shop"`)
	}
	toggle(t, api, "off")
	duration(t, "a running pod is switched off", func() bool { return disabled() == 3 })
	toggle(t, api, "on")
	duration(t, "and on again", func() bool { return disabled() == 0 })
	now, err := api.CoreV1().Pods("shop").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || now.Status.ContainerStatuses[0].RestartCount != 0 || now.Status.ContainerStatuses[0].ContainerID != web.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("it was restarted: %v", err)
	}
}

// startsWithoutAnything: no agent, no libraries, not even the folder. What is to be had nowhere keeps no pod from starting.
func startsWithoutAnything(t *testing.T, api *kubernetes.Clientset, chart *chart) {
	t.Helper()
	if err := api.AppsV1().DaemonSets(home).Delete(ctx, "hasten-agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent is gone", func() bool {
		pods, err := api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=agent"})
		return err == nil && len(pods.Items) == 0
	})
	if err := os.Rename("/var/lib/kubelet/plugins/hasten.dev", "/var/lib/kubelet/plugins/gone"); err != nil {
		t.Fatal(err)
	}
	if got := state(create(t, api, "shop", server("bare", nil))); got != inject.Accelerated {
		t.Errorf("it was to be accelerated: %q", got)
	}
	bare := running(t, api, "shop", "bare")
	handshakes(t, bare.Status.PodIP+":8443", 10)
	stock := 0
	for _, process := range processesOf(t, bare, "/usr/sbin/nginx") {
		if mapped(process) == "" {
			stock++
		}
	}
	if stock != 2 {
		t.Errorf("%d processes without libraries, instead of a master and a worker", stock)
	}
	for _, object := range chart.objects {
		if err := chart.resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	// Running pods survive the removal of the release.
	for _, name := range []string{"web", "bare"} {
		handshakes(t, running(t, api, "shop", name).Status.PodIP+":8443", 10)
		if err := api.CoreV1().Pods("shop").Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "claim and volume are gone", func() bool {
		_, one := api.CoreV1().PersistentVolumeClaims("shop").Get(ctx, inject.Claim, metav1.GetOptions{})
		_, two := api.CoreV1().PersistentVolumes().Get(ctx, "hasten-shop", metav1.GetOptions{})
		return apierrors.IsNotFound(one) && apierrors.IsNotFound(two)
	})
}
