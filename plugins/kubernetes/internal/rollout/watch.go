package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/inject"
)

const (
	// A pod that is not ready after this counts as failed.
	patience = 5 * time.Minute
	page     = 500
)

// Watcher looks at the namespaces that have a canary, and at no other pods.
type Watcher struct {
	API   kubernetes.Interface
	Every time.Duration

	judges map[types.UID]*Judge
}

// Run looks until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if err := w.Look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "canaries cannot be looked at; the next look may")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look compares the pods of each canary once.
func (w *Watcher) Look(ctx context.Context, now time.Time) error {
	namespaces, err := w.API.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: inject.Inject + "=enabled"})
	if err != nil {
		return err
	}
	fresh := map[types.UID]*Judge{}
	for _, namespace := range namespaces.Items {
		_, canary := namespace.Annotations[inject.Canary]
		_, held := namespace.Annotations[inject.Held]
		if !canary || held {
			continue
		}
		judge := w.judges[namespace.UID]
		if judge == nil {
			judge = &Judge{}
		}
		fresh[namespace.UID] = judge
		if err := w.compare(ctx, namespace.Name, judge, now); err != nil {
			return err
		}
	}
	w.judges = fresh
	return nil
}

func (w *Watcher) compare(ctx context.Context, namespace string, judge *Judge, now time.Time) error {
	accelerated, err := w.count(ctx, namespace, inject.Accelerated, now)
	if err != nil {
		return err
	}
	stock, err := w.count(ctx, namespace, inject.Stock, now)
	if err != nil {
		return err
	}
	p, holds := judge.Holds(accelerated, stock)
	if !holds {
		return nil
	}
	why := fmt.Sprintf("%d of %d accelerated pods failed, %d of %d stock pods (p = %.2g)", accelerated.Failed, accelerated.Pods, stock.Failed, stock.Pods, p)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{inject.Held: why}}})
	if err != nil {
		return err
	}
	_, err = w.API.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "hasten-rollout"})
	return err
}

func (w *Watcher) count(ctx context.Context, namespace string, state inject.State, now time.Time) (Group, error) {
	var group Group
	options := metav1.ListOptions{LabelSelector: inject.StateKey + "=" + string(state), Limit: page}
	for {
		pods, err := w.API.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return group, err
		}
		for i := range pods.Items {
			group.Pods++
			if failed(&pods.Items[i], now) {
				group.Failed++
			}
		}
		if options.Continue = pods.Continue; options.Continue == "" {
			return group, nil
		}
	}
}

func failed(pod *corev1.Pod, now time.Time) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 {
			return true
		}
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Status.StartTime == nil || now.Sub(pod.Status.StartTime.Time) < patience {
		return pod.Status.Phase == corev1.PodFailed
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status != corev1.ConditionTrue
		}
	}
	return false
}
