// Package explain says what hasten does to a pod, what it does not, and what to do about that: what was decided at its
// admission, what its node offers, and what the pod's own counters say.
package explain

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"hasten.dev/kubernetes/internal/auth"
	"hasten.dev/kubernetes/internal/inject"
)

// agents are found by this label, as the chart sets it.
const agents = "app.kubernetes.io/name=hasten,app.kubernetes.io/component=agent"

// Pod explains one, called `pod/NAME` or `NAME`. Home is hasten's namespace.
func Pod(ctx context.Context, api kubernetes.Interface, home, namespace, name string) (string, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "pods/"), "pod/")
	pod, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	state, seen := pod.Labels[inject.StateKey]
	if seen {
		text := fmt.Sprintf("pod/%s: %s\n%s", name, state, indented(pod.Annotations[inject.Reasons]))
		return text + node(ctx, api, home, pod), nil
	}
	around, err := api.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("pod/%s: not seen by hasten\n%s", name, indented(unseen(pod, around))), nil
}

// reader is the account that may read what agents serve.
const reader = "hasten-reader"

func rights(home string) string {
	return "the Role hasten-explain in " + home + " has the rights that are needed"
}

// proxy reads a path of an agent, through the API server.
var proxy = func(ctx context.Context, api kubernetes.Interface, home, agent, path, token string) ([]byte, error) {
	return api.CoreV1().RESTClient().Get().Namespace(home).Resource("pods").SubResource("proxy").Name("https:"+agent+":9469").Suffix(path).
		SetHeader(auth.Header, token).DoRaw(ctx)
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n" }

func unseen(pod *corev1.Pod, around *corev1.Namespace) string {
	if around.Labels[inject.Inject] != "enabled" {
		return fmt.Sprintf("its namespace is not labelled; `kubectl label namespace %s %s=enabled`, then restart the workload", around.Name, inject.Inject)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return "it is a static pod, which the kubelet starts without asking anybody"
	}
	return "it is older than the label, or the webhook did not answer in time; delete the pod, and its successor is accelerated"
}

// node asks the agent there, through the API server. What cannot be asked is said, and is no error: the rest is true without.
func node(ctx context.Context, api kubernetes.Interface, home string, pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return "\nit has no node yet\n"
	}
	title := "\nnode/" + pod.Spec.NodeName + "\n"
	found, err := api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{LabelSelector: agents,
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", pod.Spec.NodeName).String()})
	if err != nil {
		return title + indented("its agent cannot be looked for: "+err.Error())
	}
	if len(found.Items) == 0 {
		return title + indented("no agent runs there, in the namespace "+home+": it may have no libraries, and nobody counts; see `kubectl get daemonset --all-namespaces`")
	}
	// The API server's proxy keeps the caller's own token to itself, and may have none: this one is good for agents only.
	lifetime := int64(600)
	token, err := api.CoreV1().ServiceAccounts(home).CreateToken(ctx, reader, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{auth.Audience}, ExpirationSeconds: &lifetime}}, metav1.CreateOptions{})
	if err != nil {
		return title + indented("its agent cannot be asked: "+err.Error()+"; "+rights(home))
	}
	ask := func(path string) ([]byte, error) {
		return proxy(ctx, api, home, found.Items[0].Name, path, token.Status.Token)
	}
	facts, err := ask("/facts")
	if err != nil {
		return title + indented("its agent does not answer: "+err.Error()+"; "+rights(home))
	}
	metrics, err := ask("/metrics")
	if err != nil {
		return title + indented(offers(facts)) + indented("its counters cannot be read: "+err.Error())
	}
	return title + indented(offers(facts)) + "\ncounters\n" + indented(counters(string(metrics), pod))
}
