package webhook

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hasten.dev/kubernetes/internal/claims"
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
func Cached(namespace string, from inject.Source) cache.Options {
	labelled := labels.SelectorFromSet(labels.Set{inject.Inject: "enabled"})
	foreign, err := labels.Parse(corev1.LabelArchStable + "!=amd64," + corev1.LabelOSStable + "=linux")
	if err != nil {
		panic(err)
	}
	objects := map[client.Object]cache.ByObject{
		&corev1.Namespace{}: {Label: labelled},
		&corev1.Node{}:      {Label: foreign, Transform: nameOnly},
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", Switch)}}},
	}
	if from == inject.Node {
		objects[&corev1.PersistentVolumeClaim{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{claims.Label: "node"})}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: objects}
}

// nameOnly forgets all that a node says of itself, which is much: that it is there is all that matters.
func nameOnly(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}, nil
	}
	return object, nil
}

// Cluster answers from what is watched.
type Cluster struct {
	Reader client.Reader
	// Namespace is hasten's own.
	Namespace string
	From      inject.Source
}

// Of implements Around.
func (c *Cluster) Of(ctx context.Context, namespace string) (inject.Surroundings, error) {
	var around inject.Surroundings
	var home corev1.Namespace
	// A namespace that was labelled a moment ago may not have arrived; the API server has asked, so it is.
	unlabelled := c.Reader.Get(ctx, types.NamespacedName{Name: namespace}, &home)
	if client.IgnoreNotFound(unlabelled) != nil {
		return around, fmt.Errorf("the namespace cannot be read: %w", unlabelled)
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
	if c.From == inject.Node {
		if around.NoLibraries, err = claims.Missing(ctx, c.Reader, namespace); around.NoLibraries != "" && unlabelled != nil {
			around.NoLibraries = "the namespace has no claim " + inject.Claim + ", since it does not have the label " + inject.Inject + "=enabled: set it, or let pods get the libraries by libraries.from=copy"
		}
		return around, err
	}
	return around, nil
}
