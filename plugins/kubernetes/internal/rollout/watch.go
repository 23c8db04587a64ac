package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"hasten.dev/kubernetes/internal/inject"
)

const (
	// A pod that is not ready after this counts as failed.
	patience = 5 * time.Minute
	page     = 500
)

// Watcher looks at the namespaces that have a canary, and at no other pods. It remembers nothing: all that it has to know is
// on the namespace, so that another replica may go on at any time.
type Watcher struct {
	API   kubernetes.Interface
	Every time.Duration
	// Costs are not compared if nobody can be asked.
	Costs Costs
}

// Of the one replica that looks; the others have none.
var (
	percents = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hasten_canary_percent", Help: "Percentage of new pods that are accelerated."}, []string{"namespace"})
	holds    = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hasten_canary_held", Help: "Whether the canary is held, because its pods did worse."}, []string{"namespace"})
)

func init() { metrics.Registry.MustRegister(percents, holds) }

// Run looks until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if err := w.Look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "a canary cannot be looked at; the next look may")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look looks at each canary once. What goes wrong in one namespace is none of another's business.
func (w *Watcher) Look(ctx context.Context, now time.Time) error {
	options := metav1.ListOptions{LabelSelector: inject.Inject + "=enabled", Limit: page}
	var all error
	percents.Reset()
	holds.Reset()
	for {
		namespaces, err := w.API.CoreV1().Namespaces().List(ctx, options)
		if err != nil {
			return errors.Join(all, err)
		}
		for i := range namespaces.Items {
			if err := w.one(ctx, &namespaces.Items[i], now); err != nil {
				all = errors.Join(all, fmt.Errorf("%s: %w", namespaces.Items[i].Name, err))
			}
		}
		if options.Continue = namespaces.Continue; options.Continue == "" {
			return all
		}
	}
}

func (w *Watcher) one(ctx context.Context, namespace *corev1.Namespace, now time.Time) error {
	text, canary := namespace.Annotations[inject.Canary]
	_, held := namespace.Annotations[inject.Held]
	_, remembered := namespace.Annotations[inject.Judge]
	if canary {
		percents.WithLabelValues(namespace.Name).Set(float64(inject.Percent(text)))
		holds.WithLabelValues(namespace.Name).Set(map[bool]float64{true: 1}[held])
	}
	switch {
	case canary && held:
		return w.withdraw(ctx, namespace)
	case canary:
		return w.compare(ctx, namespace, inject.Percent(text), now)
	case remembered:
		// The next canary is another one.
		ratios.DeletePartialMatch(prometheus.Labels{"namespace": namespace.Name})
		return w.annotate(ctx, namespace, map[string]any{inject.Judge: nil, inject.CanaryCPU: nil})
	}
	return nil
}

func (w *Watcher) compare(ctx context.Context, namespace *corev1.Namespace, percent int, now time.Time) error {
	var before Judge
	if text, said := namespace.Annotations[inject.Judge]; said {
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return fmt.Errorf("the annotation %s cannot be read, and is made anew once it is removed: %w", inject.Judge, err)
		}
	}
	judge := before.At(percent, now.Unix())
	accelerated, dear, err := w.count(ctx, namespace.Name, inject.Accelerated, percent, now)
	if err != nil {
		return err
	}
	stock, cheap, err := w.count(ctx, namespace.Name, inject.Stock, percent, now)
	if err != nil {
		return err
	}
	judge, p, holds := judge.Look(accelerated, stock)
	changes := map[string]any{}
	costs := ""
	if w.Costs != nil && judge.costDue(now) && len(dear) >= fewest && len(cheap) >= fewest {
		var left float64
		var found string
		judge, left = judge.spendCost(now)
		costs, found, err = w.compareCost(ctx, namespace, judge, dear, cheap, left)
		if err != nil {
			log.FromContext(ctx).Error(err, "what pods cost cannot be compared; it is tried again later", "namespace", namespace.Name)
		}
		if found != "" {
			changes[inject.CanaryCPU] = found
		}
	}
	switch {
	case holds:
		changes[inject.Held] = fmt.Sprintf("%d of %d accelerated pods failed, %d of %d stock pods (p = %.2g)",
			accelerated.Failed, accelerated.Pods, stock.Failed, stock.Pods, p)
	case costs != "":
		changes[inject.Held] = costs
	case accelerated.Pods > 0 && stock.Pods > 0 && ripe(namespace, judge, now):
		changes[inject.Canary] = strconv.Itoa(min(2*percent, 100))
	}
	if judge != before {
		text, err := json.Marshal(judge)
		if err != nil {
			return err
		}
		changes[inject.Judge] = string(text)
	}
	if len(changes) == 0 {
		return nil
	}
	return w.annotate(ctx, namespace, changes)
}

// ripe says whether a canary that is to go on by itself has been at its percentage for long enough.
func ripe(namespace *corev1.Namespace, judge Judge, now time.Time) bool {
	every, err := time.ParseDuration(namespace.Annotations[inject.Promote])
	// Pods that are not ready count after a while only, so a shorter time would see nothing.
	return err == nil && judge.Percent > 0 && now.Unix()-judge.Since >= int64(max(every, 2*patience).Seconds())
}

// annotate changes what was looked at, and nothing newer: of two replicas that both believe to be the leader, one is refused.
func (w *Watcher) annotate(ctx context.Context, namespace *corev1.Namespace, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": namespace.ResourceVersion, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = w.API.CoreV1().Namespaces().Patch(ctx, namespace.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "hasten-rollout"})
	return err
}

// each calls for every pod of a state.
func (w *Watcher) each(ctx context.Context, namespace string, state inject.State, call func(*corev1.Pod)) error {
	options := metav1.ListOptions{LabelSelector: inject.StateKey + "=" + string(state), Limit: page}
	for {
		pods, err := w.API.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range pods.Items {
			call(&pods.Items[i])
		}
		if options.Continue = pods.Continue; options.Continue == "" {
			return nil
		}
	}
}

// count counts pods of a kind that were drawn at a percentage, and gives those whose cost may be compared.
func (w *Watcher) count(ctx context.Context, namespace string, state inject.State, percent int, now time.Time) (group Group, steady []*corev1.Pod, err error) {
	drawn := strconv.Itoa(percent)
	err = w.each(ctx, namespace, state, func(pod *corev1.Pod) {
		if pod.Annotations[inject.Drawn] != drawn {
			return
		}
		group.Pods++
		switch {
		case failed(pod, now):
			group.Failed++
		case pod.Status.Phase == corev1.PodRunning && pod.Status.StartTime != nil && now.Sub(pod.Status.StartTime.Time) >= patience:
			// No more than that is kept of each.
			steady = append(steady, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName}})
		}
	})
	return group, steady, err
}

func failed(pod *corev1.Pod, now time.Time) bool {
	restarted := func(status corev1.ContainerStatus) bool { return status.RestartCount > 0 }
	if slices.ContainsFunc(pod.Status.ContainerStatuses, restarted) || slices.ContainsFunc(pod.Status.InitContainerStatuses, restarted) {
		return true
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Status.StartTime == nil || now.Sub(pod.Status.StartTime.Time) < patience {
		return pod.Status.Phase == corev1.PodFailed
	}
	return !ready(pod)
}

// ready says no only if the kubelet does.
func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return true
}
