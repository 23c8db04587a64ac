// Package explain says what hasten does to a pod, what it does not, and what to do about that.
package explain

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hasten.dev/kubernetes/internal/inject"
)

// Pod explains one, called `pod/NAME` or `NAME`.
func Pod(ctx context.Context, api kubernetes.Interface, namespace, name string) (string, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "pods/"), "pod/")
	pod, err := api.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	state, seen := pod.Labels[inject.StateKey]
	if seen {
		lines := strings.ReplaceAll(pod.Annotations[inject.Reasons], "\n", "\n  ")
		return fmt.Sprintf("pod/%s: %s\n  %s\n", name, state, lines), nil
	}
	home, err := api.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("pod/%s: not seen by hasten\n  %s\n", name, unseen(pod, home)), nil
}

func unseen(pod *corev1.Pod, home *corev1.Namespace) string {
	if home.Labels[inject.Inject] != "enabled" {
		return fmt.Sprintf("its namespace is not labelled; `kubectl label namespace %s %s=enabled`, then restart the workload", home.Name, inject.Inject)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return "it is a static pod, which the kubelet starts without asking anybody"
	}
	return "it is older than the label, or the webhook did not answer in time; delete the pod, and its successor is accelerated"
}
