package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manifest is as much of any workload as has pods in it.
type manifest struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Items    []manifest        `json:"items"`
	Spec     struct {
		corev1.PodSpec `json:",inline"`
		Template       *corev1.PodTemplateSpec `json:"template"`
		JobTemplate    *struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

func (m manifest) pod() *corev1.Pod {
	switch {
	case m.Kind == "Pod":
		return &corev1.Pod{ObjectMeta: m.Metadata, Spec: m.Spec.PodSpec}
	case m.Spec.Template != nil:
		return &corev1.Pod{ObjectMeta: m.Spec.Template.ObjectMeta, Spec: m.Spec.Template.Spec}
	case m.Spec.JobTemplate != nil:
		template := m.Spec.JobTemplate.Spec.Template
		return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	}
	return nil
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
