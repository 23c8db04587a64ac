package explain

import (
	"context"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"hasten.dev/kubernetes/internal/auth"
	"hasten.dev/kubernetes/internal/inject"
)

func TestEveryPodHasAnExplanation(t *testing.T) {
	pod := func(namespace, name string, labels, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}}
	}
	api := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inject.Inject: "enabled"}}},
		pod("plain", "a", nil, nil), pod("shop", "old", nil, nil),
		pod("shop", "static", nil, map[string]string{corev1.MirrorPodAnnotationKey: "x"}),
		pod("shop", "on", map[string]string{inject.StateKey: "accelerated"}, map[string]string{inject.Reasons: "web: accelerated: tls"}),
	)
	for _, c := range []struct{ namespace, name, want string }{
		{"plain", "pod/a", "kubectl label namespace plain hasten.dev/inject=enabled"},
		{"shop", "old", "older than the label"},
		{"shop", "pod/static", "static pod"},
		{"shop", "pods/on", "pod/on: accelerated\n  web: accelerated: tls\n\nit has no node yet\n"},
	} {
		got, err := Pod(context.Background(), api, "hasten-system", c.namespace, c.name)
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v %q", c.name, err, got)
		}
	}
	if _, err := Pod(context.Background(), api, "hasten-system", "shop", "none"); err == nil {
		t.Error("a pod that is not there was explained")
	}
}

const facts = `{"host": {"cpu": {"model": "AMD EPYC"}, "devices": [{"kind": "qat"}, {"kind": "qat"}]}, "accelerators": [
	{"name": "tls", "decision": "apply", "reasons": [{"side": "for", "text": "the CPU has AVX-512 IFMA"}]},
	{"name": "gzip", "decision": "skip", "reasons": [{"side": "against", "text": "the library is not installed", "fix": "install it"}]}]}`

const metrics = `# TYPE hasten_processes gauge
hasten_processes{program="nginx",accelerator="tls",namespace="shop",pod="web",container="web"} 2
hasten_processes{program="nginx",accelerator="tls",namespace="shop",pod="other",container="web"} 7
# TYPE hasten_ops_total counter
hasten_ops_total{program="nginx",accelerator="tls",op="p-256-sign",engine="multibuffer",result="ok",namespace="shop",pod="web",container="web"} 90
hasten_ops_total{program="nginx",accelerator="tls",op="p-256-sign",engine="multibuffer",result="failed",namespace="shop",pod="web",container="web"} 5
hasten_ops_total{program="nginx",accelerator="tls",op="p-256-sign",engine="original",result="ok",namespace="shop",pod="web",container="web"} 10
# TYPE hasten_fallback_total counter
hasten_fallback_total{program="nginx",accelerator="tls",op="public-key",reason="alone",namespace="shop",pod="web",container="web"} 9
# TYPE hasten_cpu_saved_seconds_total counter
hasten_cpu_saved_seconds_total{program="nginx",accelerator="tls",op="p-256-sign",namespace="shop",pod="web",container="web"} 1.25
# TYPE hasten_breaker_state gauge
hasten_breaker_state{program="nginx",accelerator="tls",engine="multibuffer",device="",namespace="shop",pod="web",container="web"} 3
`

func TestANodeAndItsCountersAreAsked(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{inject.StateKey: "accelerated"},
		Annotations: map[string]string{inject.Reasons: "web: accelerated: tls"}}, Spec: corev1.PodSpec{NodeName: "one"}}
	idle := web.DeepCopy()
	idle.Name = "idle"
	agent := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hasten-system", Name: "hasten-agent-x", Labels: map[string]string{
		"app.kubernetes.io/name": "hasten", "app.kubernetes.io/component": "agent"}}, Spec: corev1.PodSpec{NodeName: "one"}}
	says := map[string]string{"/facts": facts, "/metrics": metrics}
	api := fake.NewClientset(web, idle, agent)
	api.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateActionImpl)
		asked := request.GetObject().(*authenticationv1.TokenRequest)
		if request.Subresource != "token" || request.Name != reader || asked.Spec.Audiences[0] != auth.Audience {
			t.Errorf("%+v", request)
		}
		asked.Status.Token = "short-lived"
		return true, asked, nil
	})
	// The API server of a test has no proxy. The real one is asked in e2e.
	before := proxy
	defer func() { proxy = before }()
	proxy = func(_ context.Context, _ kubernetes.Interface, home, name, path, token string) ([]byte, error) {
		if home != "hasten-system" || name != "hasten-agent-x" || token != "short-lived" {
			t.Errorf("%s %s %s", home, name, token)
		}
		if says[path] == "" {
			return nil, errors.New("forbidden")
		}
		return []byte(says[path]), nil
	}
	ask := func(name string) string {
		t.Helper()
		text, err := Pod(context.Background(), api, "hasten-system", "shop", name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := `pod/web: accelerated
  web: accelerated: tls

node/one
  AMD EPYC
  QAT: 2 functions
  tls: apply
  gzip: skip
    - the library is not installed
      fix: install it

counters
  web: nginx, tls
    2 processes; about 1.25 s of CPU time saved
    90 of 100 operations by engines (90 %)
      multibuffer: 90
    original path, alone: 9
    multibuffer is disabled by hand
`
	if got := ask("web"); got != want {
		t.Errorf("%s", got)
	}
	if got := ask("idle"); !strings.Contains(got, "no program of the pod has done anything") {
		t.Error(got)
	}
	says["/facts"] = ""
	if got := ask("web"); !strings.Contains(got, "does not answer: forbidden; the Role hasten-explain in hasten-system") {
		t.Error(got)
	}
	if err := api.CoreV1().Pods("hasten-system").Delete(context.Background(), "hasten-agent-x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := ask("web"); !strings.Contains(got, "no agent runs there") {
		t.Error(got)
	}
}
