// Package webhook answers the API server's questions about new pods, and holds canaries that do worse.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"hasten.dev/kubernetes/internal/inject"
)

// Around tells what an admission happens in.
type Around interface {
	// Of gives the annotations of a namespace, and what is true of the cluster.
	Of(ctx context.Context, namespace string) (inject.Surroundings, error)
}

// Handler admits every pod, whatever happens: a pod that cannot be accelerated is one that starts as it is.
type Handler struct {
	Around   Around
	Settings inject.Settings
}

var _ admission.Handler = (*Handler)(nil)

// Handle answers one question.
func (h *Handler) Handle(ctx context.Context, request admission.Request) (response admission.Response) {
	// The policy "Ignore" is for calls that fail. An answer that says no would be obeyed.
	defer func() {
		if cause := recover(); cause != nil {
			response = h.untouched(ctx, request, fmt.Errorf("panic: %v", cause))
		}
	}()
	before, after, err := h.change(ctx, request)
	if err != nil {
		return h.untouched(ctx, request, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}

func (h *Handler) untouched(ctx context.Context, request admission.Request, err error) admission.Response {
	admissions.WithLabelValues(request.Namespace, "error").Inc()
	log.FromContext(ctx).Error(err, "the pod starts without hasten", "namespace", request.Namespace, "name", request.Name)
	return admission.Allowed("").WithWarnings("hasten: this pod starts without acceleration: " + err.Error())
}

// change gives the pod as this program understands it, before and after. The patch is the difference of these two, so that
// fields of a newer API stay as they are.
func (h *Handler) change(ctx context.Context, request admission.Request) (before, after []byte, err error) {
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return nil, nil, fmt.Errorf("the pod cannot be read: %w", err)
	}
	around, err := h.Around.Of(ctx, request.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if before, err = json.Marshal(&pod); err != nil {
		return nil, nil, err
	}
	around.Request = string(request.UID)
	decision := inject.Decide(&pod, around)
	inject.Apply(&pod, decision, h.Settings)
	if request.DryRun == nil || !*request.DryRun {
		count(request.Namespace, decision)
	}
	after, err = json.Marshal(&pod)
	return before, after, err
}
