package claims

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hasten.dev/kubernetes/internal/inject"
)

var ctx = context.Background()

// cached reads what the fake API server has, as a cache that is always up to date.
type cached struct{ api *fake.Clientset }

func (c cached) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("not used")
}

func (c cached) Get(_ context.Context, key types.NamespacedName, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *corev1.Namespace:
		found, err := c.api.CoreV1().Namespaces().Get(ctx, key.Name, metav1.GetOptions{})
		if err == nil {
			found.DeepCopyInto(into)
		}
		return err
	case *corev1.PersistentVolumeClaim:
		found, err := c.api.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err == nil {
			found.DeepCopyInto(into)
		}
		return err
	}
	panic("not used")
}

type scene struct {
	*testing.T
	api *fake.Clientset
	*Reconciler
}

func begin(t *testing.T, names ...string) scene {
	t.Helper()
	api := fake.NewClientset(&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hasten", UID: "owner"}})
	for _, name := range names {
		labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{inject.Inject: "enabled"}}}
		if _, err := api.CoreV1().Namespaces().Create(ctx, labelled, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return scene{t, api, &Reconciler{API: api, Cached: cached{api}, Folder: "/var/lib/x", Owner: "hasten", Excluded: []string{"kube-system"}}}
}

func (s scene) reconcile(name string) {
	s.Helper()
	if _, err := s.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		s.Fatal(err)
	}
}

func (s scene) both(name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	s.Helper()
	claim, err := s.API.CoreV1().PersistentVolumeClaims(name).Get(ctx, inject.Claim, metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	} else if err != nil {
		claim = nil
	}
	volume, err := s.volume(ctx, name)
	if err != nil {
		s.Fatal(err)
	}
	return claim, volume
}

func TestALabelledNamespaceHasAClaim(t *testing.T) {
	s := begin(t, "shop", "kube-system")
	for range 2 {
		s.reconcile("shop")
	}
	claim, volume := s.both("shop")
	if claim == nil || volume == nil {
		t.Fatal("nothing was made")
	}
	if claim.Spec.VolumeName != volume.Name || volume.Spec.ClaimRef.Name != claim.Name || volume.Spec.ClaimRef.Namespace != "shop" {
		t.Error("they do not belong to each other")
	}
	// A node that has no such folder gets an empty one: a pod never waits for it.
	if host := volume.Spec.HostPath; host.Path != "/var/lib/x" || *host.Type != corev1.HostPathDirectoryOrCreate {
		t.Errorf("%+v", host)
	}
	// With the configuration everything goes, which is what uninstalling removes.
	if claim.OwnerReferences[0].UID != "owner" || volume.OwnerReferences[0].UID != "owner" {
		t.Error("they would be left behind")
	}
	s.reconcile("kube-system")
	if claim, volume := s.both("kube-system"); claim != nil || volume != nil {
		t.Error("an excluded namespace has a claim")
	}
}

func TestWithoutTheLabelTheClaimGoesAndThenItsVolume(t *testing.T) {
	s := begin(t, "shop")
	s.reconcile("shop")
	if err := s.api.CoreV1().Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reconcile("shop")
	if claim, volume := s.both("shop"); claim != nil || volume == nil {
		t.Error("the claim goes first: the API server keeps it while a pod uses it")
	}
	s.reconcile("shop")
	if _, volume := s.both("shop"); volume != nil {
		t.Error("the volume is left behind")
	}
}

func TestADeletedClaimComesBack(t *testing.T) {
	s := begin(t, "shop")
	s.reconcile("shop")
	// As the real controller does when both have found each other.
	_, volume := s.both("shop")
	volume.Spec.ClaimRef.UID = "the one that was deleted"
	if _, err := s.api.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.api.CoreV1().PersistentVolumeClaims("shop").Delete(ctx, inject.Claim, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reconcile("shop")
	if claim, volume := s.both("shop"); claim == nil || volume.Spec.ClaimRef.UID != "" {
		t.Error("the volume waits for a claim that is gone")
	}
}

func TestAnotherFolderIsAnotherVolume(t *testing.T) {
	s := begin(t, "shop")
	s.reconcile("shop")
	s.Folder = "/var/lib/y"
	for range 3 {
		s.reconcile("shop")
	}
	if claim, volume := s.both("shop"); claim == nil || volume == nil || volume.Spec.HostPath.Path != "/var/lib/y" {
		t.Errorf("%v, %v", claim, volume)
	}
}

func TestAStrangersVolumeIsNotTouched(t *testing.T) {
	s := begin(t, "shop")
	stranger := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "hasten-shop"}}
	if _, err := s.api.CoreV1().PersistentVolumes().Create(ctx, stranger, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}})
	if err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Error(err)
	}
}

// A pod whose claim is not bound would not be scheduled, so it does not get one.
func TestOnlyABoundClaimIsGiven(t *testing.T) {
	s := begin(t, "shop")
	missing := func() string {
		why, err := Missing(ctx, s.Cached, "shop")
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	if why := missing(); !strings.Contains(why, "no claim") {
		t.Error(why)
	}
	s.reconcile("shop")
	if why := missing(); !strings.Contains(why, "not bound") {
		t.Error(why)
	}
	claim, _ := s.both("shop")
	claim.Status.Phase = corev1.ClaimBound
	if _, err := s.api.CoreV1().PersistentVolumeClaims("shop").UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if why := missing(); why != "" {
		t.Error(why)
	}
	now := metav1.Now()
	claim.DeletionTimestamp = &now
	if _, err := s.api.CoreV1().PersistentVolumeClaims("shop").Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if why := missing(); !strings.Contains(why, "deleted") {
		t.Error(why)
	}
}
