package webhook

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hasten.dev/kubernetes/internal/inject"
)

// Switch is the ConfigMap with the kill switch.
const Switch = "hasten-switch"

// SwitchedOff reads the kill switch. Only a clear "off" is one: somebody in a hurry may write it as they like.
func SwitchedOff(data map[string]string) bool {
	switch strings.ToLower(strings.TrimSpace(data["accelerate"])) {
	case "off", "false", "no", "0":
		return true
	}
	return false
}

// Cached says what is watched: labelled namespaces, nodes without libraries for them, and the switch. No pod is.
func Cached(namespace string) cache.Options {
	labelled := labels.SelectorFromSet(labels.Set{inject.Inject: "enabled"})
	foreign, err := labels.Parse(corev1.LabelArchStable + "!=amd64," + corev1.LabelOSStable + "=linux")
	if err != nil {
		panic(err)
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}: {Label: labelled},
			&corev1.Node{}:      {Label: foreign},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", Switch)}}},
		},
	}
}

// Cluster answers from what is watched.
type Cluster struct {
	Reader client.Reader
	// Namespace is hasten's own.
	Namespace string
}

// Of implements Around.
func (c *Cluster) Of(ctx context.Context, namespace string) (inject.Surroundings, error) {
	var around inject.Surroundings
	var home corev1.Namespace
	// A namespace that was labelled a moment ago may not have arrived; the API server has asked, so it is.
	if err := c.Reader.Get(ctx, types.NamespacedName{Name: namespace}, &home); client.IgnoreNotFound(err) != nil {
		return around, fmt.Errorf("the namespace cannot be read: %w", err)
	}
	around.Namespace = home.Annotations
	var foreign corev1.NodeList
	if err := c.Reader.List(ctx, &foreign, client.Limit(1)); err != nil {
		return around, fmt.Errorf("the nodes cannot be read: %w", err)
	}
	around.OtherArchitectures = len(foreign.Items) > 0
	var toggle corev1.ConfigMap
	err := c.Reader.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: Switch}, &toggle)
	if err != nil && !apierrors.IsNotFound(err) {
		return around, fmt.Errorf("the switch cannot be read: %w", err)
	}
	around.SwitchedOff = SwitchedOff(toggle.Data)
	return around, nil
}
