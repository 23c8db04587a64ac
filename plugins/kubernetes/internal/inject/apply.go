package inject

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Apply does to a pod what was decided. Done twice, it changes nothing the second time; what others have added meanwhile
// gets its part.
func Apply(pod *corev1.Pod, decision Decision, settings Settings) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[StateKey] = string(decision.State)
	pod.Annotations[Reasons] = decision.Text()
	if decision.drawn != "" {
		pod.Annotations[Drawn] = decision.drawn
	}
	if decision.State != Accelerated {
		return
	}
	for _, container := range candidates(pod) {
		if slices.Contains(decision.containers, container.Name) {
			prepare(container, decision, settings)
		}
	}
	addLibraries(pod, decision, settings)
}

func prepare(container *corev1.Container, decision Decision, settings Settings) {
	appendTo(container, preload, Shim, ":")
	if decision.node {
		appendTo(container, nodeOptions, "--require "+loaderFolder+"/"+loaderFile, " ")
		addMount(container, corev1.VolumeMount{Name: loaderName, MountPath: loaderFolder, ReadOnly: true})
	}
	for _, variable := range decision.environment {
		// What the pod says itself counts.
		if !sets(container, variable.Name) {
			container.Env = append(container.Env, variable)
		}
	}
	mount := corev1.VolumeMount{Name: volumeName, MountPath: Folder, ReadOnly: true}
	if settings.From == Image {
		// An image is mounted whole; the libraries are in a folder of it.
		mount.MountPath, mount.SubPath = Libraries, strings.TrimPrefix(ImageFolder, "/")
	}
	addMount(container, mount)
}

// OnlyOurs says whether a container of an admitted pod has LD_PRELOAD from hasten alone: then the image's own, if it has one, is
// out of force.
func OnlyOurs(pod *corev1.Pod, name string) bool {
	for _, container := range candidates(pod) {
		if container.Name != name {
			continue
		}
		for _, variable := range container.Env {
			if variable.Name == preload {
				return variable.Value == Shim
			}
		}
	}
	return false
}

// Overwritten are the containers of an admitted pod that have the libraries, and whose LD_PRELOAD is without the shim: somebody who was asked
// after us has put something in its place.
func Overwritten(pod *corev1.Pod) (names []string) {
	for _, container := range candidates(pod) {
		if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volumeName }) {
			continue
		}
		value := ""
		for _, variable := range container.Env {
			if variable.Name == preload {
				value = variable.Value
			}
		}
		if !strings.Contains(value, Shim) {
			names = append(names, container.Name)
		}
	}
	return names
}

// appendTo puts a value behind what a variable has. Of several of one name, the last one counts.
func appendTo(container *corev1.Container, name, value, separator string) {
	for i := len(container.Env) - 1; i >= 0; i-- {
		variable := &container.Env[i]
		if variable.Name != name {
			continue
		}
		switch {
		case strings.Contains(variable.Value, value):
		case strings.TrimSpace(variable.Value) == "":
			variable.Value = value
		default:
			variable.Value = strings.TrimRight(variable.Value, " :") + separator + value
		}
		return
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
}

func addLibraries(pod *corev1.Pod, decision Decision, settings Settings) {
	if decision.node {
		pod.Annotations[NodeLoader] = loaderText
		addVolume(pod, loaderName, corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: loaderFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + NodeLoader + "']"},
		}}}})
	}
	switch settings.From {
	case Image:
		addVolume(pod, volumeName, corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: settings.Image, PullPolicy: settings.PullPolicy}})
	case Copy:
		limit := resource.MustParse("64Mi")
		if addVolume(pod, volumeName, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}) {
			pod.Annotations[evictable] = joined(pod.Annotations[evictable], volumeName)
			// In front of all others: sidecars begin in their order, too.
			pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, copyContainer(pod, settings))
		}
	default:
		addVolume(pod, volumeName, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Claim, ReadOnly: true}})
	}
}

// addVolume says whether it was not there.
func addVolume(pod *corev1.Pod, name string, source corev1.VolumeSource) bool {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		return false
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	return true
}

func addMount(container *corev1.Container, mount corev1.VolumeMount) {
	if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == mount.Name }) {
		container.VolumeMounts = append(container.VolumeMounts, mount)
	}
}

func joined(list, word string) string {
	if list == "" {
		return word
	}
	return list + "," + word
}

// copyContainer is what a restricted namespace admits. It succeeds even if it could not copy: a loader that does not find
// the shim goes on without it.
func copyContainer(pod *corev1.Pod, settings Settings) corev1.Container {
	isFalse, isTrue, user := false, true, int64(65532)
	security := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &isFalse,
		ReadOnlyRootFilesystem:   &isTrue,
		RunAsNonRoot:             &isTrue,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	// A user that the pod, or a policy before us, has chosen is kept.
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.RunAsUser == nil || *pod.Spec.SecurityContext.RunAsUser == 0 {
		security.RunAsUser = &user
	}
	return corev1.Container{
		Name: copyName, Image: settings.Image, ImagePullPolicy: settings.PullPolicy,
		Args:            []string{"copy", ImageFolder, Libraries},
		SecurityContext: security,
		Resources:       copyResources(pod),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeName, MountPath: Folder}},
	}
}

// copyResources keeps the pod's quality of service: what is best effort stays so, and what is guaranteed needs limits that
// equal the requests. Init containers run before the others, so this is not added to what those request.
func copyResources(pod *corev1.Pod) corev1.ResourceRequirements {
	says := func(c corev1.Container) bool { return len(c.Resources.Requests)+len(c.Resources.Limits) > 0 }
	if !slices.ContainsFunc(pod.Spec.Containers, says) && !slices.ContainsFunc(pod.Spec.InitContainers, says) && pod.Spec.Resources == nil {
		return corev1.ResourceRequirements{}
	}
	amount := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("32Mi"),
	}
	return corev1.ResourceRequirements{Requests: amount, Limits: amount.DeepCopy()}
}
