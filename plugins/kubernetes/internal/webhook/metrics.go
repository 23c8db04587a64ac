package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"hasten.dev/kubernetes/internal/inject"
)

// Only labelled namespaces ask, so there are no more series than these have states.
var (
	admissions = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hasten_admissions_total",
		Help: "Pods by what became of them; error is a pod that started as it was, because of a fault here."}, []string{"namespace", "state"})
	reasons = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hasten_admission_reasons_total",
		Help: "Why pods, or containers of pods, were not accelerated."}, []string{"namespace", "reason"})
)

func init() { metrics.Registry.MustRegister(admissions, reasons) }

// count counts calls, of which a pod may have several: another webhook that changes it makes the API server ask again.
func count(namespace string, decision inject.Decision) {
	admissions.WithLabelValues(namespace, string(decision.State)).Inc()
	for _, code := range decision.Codes() {
		reasons.WithLabelValues(namespace, code).Inc()
	}
}
