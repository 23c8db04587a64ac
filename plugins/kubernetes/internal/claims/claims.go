// Package claims gives each labelled namespace a PersistentVolumeClaim of the folder on the nodes that has the libraries.
//
// A pod of a restricted namespace may not mount a folder of its node, but a claim it may. The volume behind it is a folder
// that the kubelet makes if it is not there, so that a pod starts on a node without libraries as well, and without them.
// Nothing is pulled for the pod, and its node has one copy of the libraries in memory for all pods.
package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hasten.dev/kubernetes/internal/inject"
)

// Label of the claims and volumes that this package makes, and the only ones that it touches.
const Label = "hasten.dev/libraries"

// patience is how long something is given to be gone before it is looked at again. Usually an event comes first.
const patience = 10 * time.Second

// Reconciler makes and removes claims and their volumes.
type Reconciler struct {
	API kubernetes.Interface
	// Cached has labelled namespaces, and claims with the label.
	Cached client.Reader
	// Folder is on each node.
	Folder string
	// Owner is the MutatingWebhookConfiguration, with which everything goes.
	Owner string
	// Excluded namespaces have no claim.
	Excluded []string
}

// Add makes a controller of it.
func (r *Reconciler) Add(mgr ctrl.Manager) error {
	home := func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("libraries").For(&corev1.Namespace{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(home)).Complete(r)
}

func volumeOf(namespace string) string { return "hasten-" + namespace }

// Reconcile brings one namespace to where it should be.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := request.Name
	wanted, err := r.wants(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	claim, err := r.claim(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	volume, err := r.volume(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	// Neither can be moved to another folder, and a claim that has lost its volume stays lost.
	stale := volume != nil && volume.Spec.HostPath.Path != r.Folder || claim != nil && claim.Status.Phase == corev1.ClaimLost
	if !wanted || stale {
		return r.remove(ctx, claim, volume, wanted)
	}
	if leaving(claim) || leaving(volume) {
		return reconcile.Result{RequeueAfter: patience}, nil
	}
	return r.provide(ctx, name, claim, volume)
}

func (r *Reconciler) wants(ctx context.Context, name string) (bool, error) {
	var namespace corev1.Namespace
	if err := r.Cached.Get(ctx, types.NamespacedName{Name: name}, &namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.Labels[inject.Inject] == "enabled" && namespace.DeletionTimestamp == nil && !slices.Contains(r.Excluded, name), nil
}

func (r *Reconciler) claim(ctx context.Context, namespace string) (*corev1.PersistentVolumeClaim, error) {
	var claim corev1.PersistentVolumeClaim
	if err := r.Cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: inject.Claim}, &claim); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &claim, nil
}

// volume gives what is called like ours and is ours.
func (r *Reconciler) volume(ctx context.Context, namespace string) (*corev1.PersistentVolume, error) {
	volume, err := r.API.CoreV1().PersistentVolumes().Get(ctx, volumeOf(namespace), metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if volume.Labels[Label] != "node" || volume.Spec.HostPath == nil {
		return nil, reconcile.TerminalError(fmt.Errorf("there is a PersistentVolume %s that hasten has not made: rename it", volume.Name))
	}
	return volume, nil
}

func leaving(object metav1.Object) bool {
	switch one := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return one != nil && one.DeletionTimestamp != nil
	case *corev1.PersistentVolume:
		return one != nil && one.DeletionTimestamp != nil
	}
	return false
}

// remove takes the claim first. The API server keeps it for as long as a pod uses it, and the volume for as long as it has a
// claim.
func (r *Reconciler) remove(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, again bool) (reconcile.Result, error) {
	if claim != nil && !leaving(claim) {
		exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}}
		if err := r.API.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, exactly); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	if claim == nil && volume != nil && !leaving(volume) {
		exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}}
		if err := r.API.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, exactly); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	if again || claim != nil {
		return reconcile.Result{RequeueAfter: patience}, nil
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) provide(ctx context.Context, name string, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (reconcile.Result, error) {
	if claim != nil && volume != nil {
		return reconcile.Result{}, nil
	}
	owner, err := r.API.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, r.Owner, metav1.GetOptions{})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("what the claim of %s is to go with cannot be read: %w", name, err)
	}
	about := metav1.ObjectMeta{Name: inject.Claim, Namespace: name, Labels: map[string]string{Label: "node"}, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration", Name: owner.Name, UID: owner.UID,
	}}}
	switch {
	case volume == nil:
		_, err = r.API.CoreV1().PersistentVolumes().Create(ctx, newVolume(about, r.Folder), metav1.CreateOptions{})
	case claim == nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID != "":
		// Somebody has deleted the claim, and the volume would wait for that very one.
		err = r.release(ctx, volume)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	if claim == nil {
		_, err = r.API.CoreV1().PersistentVolumeClaims(name).Create(ctx, newClaim(about), metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("a quota or a policy of %s forbids its claim, so its pods are left alone: %w", name, err)
		}
	}
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/spec/claimRef/uid", "value": volume.Spec.ClaimRef.UID},
		{"op": "remove", "path": "/spec/claimRef/uid"},
	})
	if err != nil {
		return err
	}
	_, err = r.API.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "hasten-libraries"})
	return err
}

// Both are as small as an amount can be: nothing is stored.
var (
	size  = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	modes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	// No class: nobody is to provision anything.
	class = ""
)

func newVolume(about metav1.ObjectMeta, folder string) *corev1.PersistentVolume {
	home, kind := about.Namespace, corev1.HostPathDirectoryOrCreate
	about.Name, about.Namespace = volumeOf(home), ""
	return &corev1.PersistentVolume{ObjectMeta: about, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: home, Name: inject.Claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &kind}},
	}}
}

func newClaim(about metav1.ObjectMeta) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: about, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: &class, VolumeName: volumeOf(about.Namespace),
		Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
}

// Missing says why pods of a namespace cannot have the libraries of their node; empty if they can. A pod whose claim is not
// bound would not be scheduled.
func Missing(ctx context.Context, cached client.Reader, namespace string) (string, error) {
	var claim corev1.PersistentVolumeClaim
	err := cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: inject.Claim}, &claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("the claims cannot be read: %w", err)
	case err != nil:
		return "the namespace has no claim " + inject.Claim + " yet, which is made a moment after the label is set", nil
	case claim.DeletionTimestamp != nil:
		return "the claim " + inject.Claim + " of the namespace is being deleted", nil
	case claim.Status.Phase != corev1.ClaimBound:
		return "the claim " + inject.Claim + " of the namespace is not bound yet", nil
	}
	return "", nil
}
