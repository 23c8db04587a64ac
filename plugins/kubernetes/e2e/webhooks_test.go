//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hasten.dev/kubernetes/internal/inject"
)

// theirs is what others preload.
const theirs = "/opt/theirs/lib.so"

// manner in which somebody else's webhook treats LD_PRELOAD.
type manner struct {
	what string
	// again says that it wants to be asked again after changes of others, as we do.
	again  bool
	change func(*corev1.Pod)
	// wins if it is asked last.
	wins bool
}

// manners of webhooks. Those that are asked again are to do nothing that they have done before, which the last one here ignores.
func manners() []manner {
	variable := func(pod *corev1.Pod, value string) {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: value})
	}
	instead := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = nil
		variable(pod, theirs)
	}
	return []manner{
		{what: "says it once more", change: func(pod *corev1.Pod) { variable(pod, theirs) }},
		{what: "says what it wants instead", change: instead},
		{what: "puts it in front", again: true, change: func(pod *corev1.Pod) {
			value, _ := preloaded(pod.Spec.Containers[0])
			if strings.Contains(value, theirs) {
				return
			}
			pod.Spec.Containers[0].Env = nil
			variable(pod, strings.TrimSuffix(theirs+":"+value, ":"))
		}},
		{what: "insists on what it wants instead", again: true, change: instead, wins: true},
	}
}

// besideAnotherWebhook: somebody else changes pods, too, before us or after, and we are asked again for what he has added.
func besideAnotherWebhook(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	always := corev1.ContainerRestartPolicyAlways
	for _, manner := range manners() {
		for _, name := range []string{"a-before", "z-after"} {
			asked, remove := anotherWebhook(t, api, name, manner.again, func(pod *corev1.Pod) {
				if len(pod.Spec.Containers) < 2 {
					pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy"})
					pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "sidecar", Image: "proxy", RestartPolicy: &always},
						corev1.Container{Name: "init", Image: "proxy"})
				}
				manner.change(pod)
			})
			var pod *corev1.Pod
			eventually(t, name+" is asked", func() bool {
				before := asked()
				pod = start(t, api, "shop", metav1.DryRunAll)
				return asked() > before
			})
			isWhole(t, name+", which "+manner.what, pod, manner.wins)
			remove()
		}
	}
}

// isWhole: what the other wants is there, and everything of ours, once. Whoever is asked last can have his way, and nothing else is lost by
// it: the pod starts, and the agent tells it.
func isWhole(t *testing.T, with string, pod *corev1.Pod, mayLose bool) {
	t.Helper()
	if state(pod) != inject.Accelerated {
		t.Errorf("with %s the pod is %q", with, state(pod))
	}
	all := append(append([]corev1.Container{}, pod.Spec.Containers...), pod.Spec.InitContainers...)
	if len(all) != 4 {
		t.Fatalf("with %s it has %d containers", with, len(all))
	}
	for _, container := range all {
		value, said := preloaded(container)
		mounts := 0
		for _, mount := range container.VolumeMounts {
			if mount.MountPath == inject.Folder {
				mounts++
			}
		}
		if container.Name == "init" {
			if said || mounts != 0 {
				t.Errorf("with %s a container that ends before the others has %q and %d mounts", with, value, mounts)
			}
			continue
		}
		if lost := inject.Overwritten(pod); mayLose && container.Name == "web" && value == theirs {
			if len(lost) != 1 || lost[0] != "web" {
				t.Errorf("with %s nobody would be told what has become of LD_PRELOAD: %v", with, lost)
			}
			continue
		}
		if strings.Count(value, inject.Shim) != 1 || mounts != 1 {
			t.Errorf("with %s, %s has LD_PRELOAD=%q and %d mounts", with, container.Name, value, mounts)
		}
		if container.Name == "web" && (!strings.Contains(value, theirs) || !strings.HasSuffix(value, inject.Shim)) {
			t.Errorf("with %s, %s has LD_PRELOAD=%q", with, container.Name, value)
		}
		if !strings.Contains(pod.Annotations[inject.Reasons], container.Name+": accelerated") {
			t.Errorf("with %s, %s is not among the reasons: %s", with, container.Name, pod.Annotations[inject.Reasons])
		}
	}
	claims := 0
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == inject.Claim {
			claims++
		}
	}
	if claims != 1 {
		t.Errorf("with %s there are %d volumes of the libraries", with, claims)
	}
}

// preloaded is what the container's loader sees: of several variables of one name, the kubelet passes on the last.
func preloaded(container corev1.Container) (value string, said bool) {
	for _, variable := range container.Env {
		if variable.Name == "LD_PRELOAD" {
			value, said = variable.Value, true
		}
	}
	return value, said
}

// anotherWebhook answers on loopback. It says how often it was asked, and how to get rid of it.
func anotherWebhook(t *testing.T, api *kubernetes.Clientset, name string, again bool, change func(*corev1.Pod)) (asked func() int64, remove func()) {
	t.Helper()
	certificate, authority := ownCertificate(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if json.NewDecoder(request.Body).Decode(&review) != nil || review.Request == nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(answer, "not a pod", http.StatusBadRequest)
			return
		}
		count.Add(1)
		change(&pod)
		patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": pod.Spec}})
		if err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		how := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &how}
		review.Request = nil
		_ = json.NewEncoder(answer).Encode(review)
	})}
	go func() { _ = server.Serve(listener) }()
	url, none, policy, always := "https://"+listener.Addr().String()+"/", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.Fail
	if again {
		policy = admissionregistrationv1.IfNeededReinvocationPolicy
	}
	hooks := api.AdmissionregistrationV1().MutatingWebhookConfigurations()
	// The API server asks in the order of these names.
	_, err = hooks.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ReinvocationPolicy: &policy, FailurePolicy: &always, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return count.Load, func() {
		if err := hooks.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		// The API server hears of it a moment later, and what does not answer then keeps pods from being made.
		eventually(t, name+" is not asked any more", func() bool {
			before := count.Load()
			start(t, api, "shop", metav1.DryRunAll)
			return count.Load() == before
		})
		_ = server.Close()
	}
}

// ownCertificate is one for loopback that vouches for itself.
func ownCertificate(t *testing.T) (certificate tls.Certificate, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
