package explain

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

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
		{"shop", "pods/on", "pod/on: accelerated\n  web: accelerated: tls"},
	} {
		got, err := Pod(context.Background(), api, c.namespace, c.name)
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v %q", c.name, err, got)
		}
	}
	if _, err := Pod(context.Background(), api, "shop", "none"); err == nil {
		t.Error("a pod that is not there was explained")
	}
}
