package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hasten.dev/kubernetes/internal/inject"
)

// part of the accelerated pods of a canary that are evicted at once: one of so many, and at least one.
const part = 20

// withdraw evicts the accelerated pods of a held canary, a few at each look, if the namespace asks for it. Their successors are
// held. An eviction respects the budgets of the pods; one that has to wait comes again at the next look.
func (w *Watcher) withdraw(ctx context.Context, namespace *corev1.Namespace) error {
	if asked := strings.TrimSpace(namespace.Annotations[inject.Withdraw]); asked != "enabled" && asked != "true" {
		return nil
	}
	// The successors of those that went before come first: if these do not get ready either, hasten is not to blame, and
	// further evictions would only do harm.
	waits := false
	if err := w.each(ctx, namespace.Name, inject.HeldState, func(pod *corev1.Pod) {
		waits = waits || pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning && !ready(pod)
	}); err != nil || waits {
		return err
	}
	pods, err := w.withdrawn(ctx, namespace.Name)
	if err != nil {
		return err
	}
	for _, pod := range pods[:min(len(pods), max(1, len(pods)/part))] {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
		err := w.API.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("pod %s cannot be evicted: %w", pod.Name, err)
		}
	}
	return nil
}

// withdrawn are the pods to evict, those that do not work first. Whoever has no controller would have no successor.
func (w *Watcher) withdrawn(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	err := w.each(ctx, namespace, inject.Accelerated, func(pod *corev1.Pod) {
		_, drawn := pod.Annotations[inject.Drawn]
		done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if drawn && !done && pod.DeletionTimestamp == nil && metav1.GetControllerOf(pod) != nil {
			pods = append(pods, pod)
		}
	})
	now := time.Now()
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return rank(a, now) - rank(b, now) })
	return pods, err
}

func rank(pod *corev1.Pod, now time.Time) int {
	if failed(pod, now) {
		return 0
	}
	return 1
}
