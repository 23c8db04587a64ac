package webhook

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"encoding/json"

	"hasten.dev/kubernetes/internal/inject"
)

type around func() (inject.Surroundings, error)

func (a around) Of(context.Context, string) (inject.Surroundings, error) { return a() }

// A question as an API server of 1.36 asks it, for a pod of a Deployment.
func review(t *testing.T) admission.Request {
	t.Helper()
	text, err := os.ReadFile("testdata/review.json")
	if err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := yaml.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: *review.Request}
}

func TestARealReview(t *testing.T) {
	handler := Handler{Around: around(func() (inject.Surroundings, error) { return inject.Surroundings{}, nil }), Settings: inject.Settings{Image: "hasten:1"}}
	request := review(t)
	response := handler.Handle(context.Background(), request)
	if err := response.Complete(request); err != nil || !response.Allowed {
		t.Fatalf("%v %+v", err, response)
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := patch.Apply(request.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels[inject.StateKey] != "accelerated" || pod.Spec.Containers[0].Env[0].Value != inject.Shim {
		t.Errorf("%s", text)
	}
	// What this program's version of the API does not know must survive.
	if !strings.Contains(string(text), `"aFieldOfTomorrow":"stays"`) {
		t.Errorf("a field was lost: %s", response.Patch)
	}
}

func TestTroubleAdmitsThePodAsItIs(t *testing.T) {
	for name, handler := range map[string]Handler{
		"error": {Around: around(func() (inject.Surroundings, error) { return inject.Surroundings{}, errors.New("no answer") })},
		"panic": {Around: around(func() (inject.Surroundings, error) { panic("a defect") })},
	} {
		response := handler.Handle(context.Background(), review(t))
		if !response.Allowed || len(response.Patches) != 0 || len(response.Warnings) != 1 {
			t.Errorf("%s: %+v", name, response)
		}
	}
	broken := review(t)
	broken.Object.Raw = []byte(`{"spec":[]}`)
	handler := Handler{Around: around(func() (inject.Surroundings, error) { return inject.Surroundings{}, nil })}
	if response := handler.Handle(context.Background(), broken); !response.Allowed {
		t.Errorf("%+v", response)
	}
}

func TestTheSwitch(t *testing.T) {
	for text, off := range map[string]bool{"off": true, " OFF\n": true, "false": true, "0": true, "on": false, "": false, "true": false} {
		if SwitchedOff(map[string]string{"accelerate": text}) != off {
			t.Errorf("%q", text)
		}
	}
}
