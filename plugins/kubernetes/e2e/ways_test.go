//go:build e2e

package e2e

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hasten.dev/kubernetes/internal/inject"
)

// The other two ways by which pods can have the libraries, and pods of every kind of workload, on a real node.
func TestOtherWaysToTheLibraries(t *testing.T) {
	ran(t)
	config, api := cluster(t, podControllers+",statefulset-controller,job-controller")
	m := newMachine(t, config.Host, api)
	m.load(os.Getenv("HASTEN_E2E_IMAGE"), "--index-name", "hasten.test/hasten:1")
	m.load(nginx(t).archive(t))
	namespace(t, api, home, nil, nil)
	namespace(t, api, "shop", map[string]string{inject.Inject: "enabled", "pod-security.kubernetes.io/enforce": "restricted"}, nil)
	for _, from := range []string{"copy", "image"} {
		render(t, config, api, map[string]any{"image": map[string]any{"repository": "hasten.test/hasten", "tag": "1"}, "webhook": map[string]any{"replicas": 1},
			"agent": map[string]any{"enabled": false}, "libraries": map[string]any{"from": from}}).apply()
		eventually(t, "pods have their libraries by "+from, func() bool {
			pod, err := api.CoreV1().Pods("shop").Create(ctx, server("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil || state(pod) != inject.Accelerated {
				return false
			}
			for _, volume := range pod.Spec.Volumes {
				if from == "image" && volume.Image != nil || from == "copy" && volume.Name == "hasten-dev-libraries" && volume.EmptyDir != nil {
					return true
				}
			}
			return false
		})
		// A pod may ask for it itself, in a namespace that does not.
		chosen, err := api.CoreV1().Pods("default").Create(ctx, server("dry", func(pod *corev1.Pod) { pod.Labels = map[string]string{inject.Inject: "enabled"} }), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || state(chosen) != inject.Accelerated {
			t.Errorf("%v, it is %q", err, state(chosen))
		}
		workloads(t, api)
		duration(t, "a StatefulSet, a DaemonSet and a Job run with libraries by "+from, func() bool {
			pods, err := api.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) != 3 {
				return false
			}
			for _, pod := range pods.Items {
				if !ready(&pod) {
					return false
				}
			}
			return true
		})
		pods, err := api.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			handshakes(t, pod.Status.PodIP+":8443", 10)
			found := processesOf(t, &pod, "/usr/sbin/nginx")
			for _, process := range found {
				if got := mapped(process); got != "libhasten.so libhasten_tls.so libhasten_gzip.so" {
					t.Errorf("by %s, %s of %s has %q", from, process, pod.Name, got)
				}
			}
			if len(found) == 0 {
				t.Errorf("%s has no server", pod.Name)
			}
		}
		ends(t, api)
	}
}

// workloads of one pod each.
func workloads(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: server("", nil).Spec}
	template.Spec.TerminationGracePeriodSeconds = new(int64)
	selector, about := &metav1.LabelSelector{MatchLabels: labels}, metav1.ObjectMeta{Name: "web"}
	if _, err := api.AppsV1().StatefulSets("shop").Create(ctx, &appsv1.StatefulSet{ObjectMeta: about, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels = map[string]string{"app": "each"}
	template.Labels, selector = labels, &metav1.LabelSelector{MatchLabels: labels}
	if _, err := api.AppsV1().DaemonSets("shop").Create(ctx, &appsv1.DaemonSet{ObjectMeta: about, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	template.Labels, template.Spec.RestartPolicy = nil, corev1.RestartPolicyNever
	if _, err := api.BatchV1().Jobs("shop").Create(ctx, &batchv1.Job{ObjectMeta: about, Spec: batchv1.JobSpec{Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ends(t *testing.T, api *kubernetes.Clientset) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	for _, err := range []error{api.AppsV1().StatefulSets("shop").Delete(ctx, "web", options), api.AppsV1().DaemonSets("shop").Delete(ctx, "web", options), api.BatchV1().Jobs("shop").Delete(ctx, "web", options)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "they are gone", func() bool {
		pods, err := api.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}
