package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"hasten.dev/kubernetes/internal/inject"
)

const examples = "../../../../packaging/kubernetes/examples/"

// podOf gives the pod that an object of an example makes, if it does. Those of an EnvoyProxy are made by Envoy Gateway, with two
// containers, and with the annotations that the EnvoyProxy has for them.
func podOf(t *testing.T, object *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	if object.GetKind() == "EnvoyProxy" {
		annotations, found, err := unstructured.NestedStringMap(object.Object, "spec", "provider", "kubernetes", "envoyDeployment", "pod", "annotations")
		if !found || err != nil {
			t.Fatal(found, err)
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "envoy"}, {Name: "shutdown-manager"}}}}
	}
	if object.GetAPIVersion() != "apps/v1" {
		return nil
	}
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var workload manifest
	if err := json.Unmarshal(text, &workload); err != nil {
		t.Fatal(err)
	}
	return workload.pod()
}

// An example that does not do what it says is worse than none. That API servers take them is a test of e2e.
func TestExamplesDoWhatTheySay(t *testing.T) {
	wanted := map[string]string{
		"deployment.yaml":    "web: accelerated: tls, gzip, envoy",
		"istio.yaml":         "istio-proxy: accelerated: envoy",
		"envoy-gateway.yaml": "envoy: accelerated: envoy",
	}
	found, err := filepath.Glob(examples + "*")
	if err != nil || len(found) != len(wanted) {
		t.Fatal(found, err)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		var around inject.Surroundings
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if object.GetKind() == "Namespace" {
				around.Namespace = object.GetAnnotations()
				// Whether a pod is drawn is chance.
				delete(around.Namespace, inject.Canary)
			}
			if pod := podOf(t, object); pod != nil {
				said += inject.Decide(pod, around).Text()
			}
		}
		if want := wanted[filepath.Base(file)]; said != want {
			t.Errorf("%s: %q", file, said)
		}
	}
}
