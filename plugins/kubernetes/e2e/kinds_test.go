//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Every variant of the chart, and every example, is taken by a real API server that has the kinds of the other projects: each of
// these is a release's first installation, and the upgrade of one as it comes.
func TestTheAPIServerTakesEveryVariantAndExample(t *testing.T) {
	ran(t)
	config, api := cluster(t, claimControllers)
	namespace(t, api, home, nil, nil)
	namespace(t, api, "envoy-gateway-system", nil, nil)
	foreign := newChart(t, config, api)
	files, err := filepath.Glob(filepath.Join(programs, "kinds", "*.yaml"))
	if err != nil || len(files) < 15 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		foreign.read(string(text))
	}
	foreign.apply()
	for _, object := range foreign.objects {
		eventually(t, object.GetName()+" is known", func() bool {
			found, err := foreign.resource(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			return err == nil && established(found)
		})
	}
	text, err := os.ReadFile(filepath.Join(root, "plugins/kubernetes/internal/chart/testdata/variants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var variants map[string]map[string]any
	if err := yaml.Unmarshal(text, &variants); err != nil || len(variants) < 10 {
		t.Fatal(err, len(variants))
	}
	every := func() {
		t.Helper()
		for name, values := range variants {
			t.Log(name)
			one := render(t, config, api, values)
			// Of these, the module proxy has no definitions.
			one.objects = without(one.objects, "monitoring.coreos.com/")
			one.apply(metav1.DryRunAll)
		}
	}
	every()
	chart := render(t, config, api, nil)
	chart.apply()
	every()
	examples, err := filepath.Glob(filepath.Join(root, "packaging/kubernetes/examples/*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatal(err, "no examples")
	}
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(filepath.Base(file))
		example := newChart(t, config, api)
		example.read(string(text))
		example.apply()
	}
	chart.remove()
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

func without(objects []*unstructured.Unstructured, group string) (rest []*unstructured.Unstructured) {
	for _, object := range objects {
		if !strings.HasPrefix(object.GetAPIVersion(), group) {
			rest = append(rest, object)
		}
	}
	return rest
}
