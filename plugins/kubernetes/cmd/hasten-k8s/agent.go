package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hasten.dev/kubernetes/internal/agent"
	"hasten.dev/kubernetes/internal/explain"
	"hasten.dev/kubernetes/internal/inject"
)

func client() (*kubernetes.Clientset, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no API server: run this in a pod, or set KUBECONFIG: %w", err)
	}
	return kubernetes.NewForConfig(config)
}

func runAgent(ctx context.Context, arguments []string) error {
	ctrl.SetLogger(klog.NewKlogr())
	flags := flag.NewFlagSet("agent", flag.ExitOnError)
	node := flags.String("node", os.Getenv("NODE_NAME"), "the node that this runs on")
	namespace := flags.String("namespace", os.Getenv("POD_NAMESPACE"), "the namespace that has the switch")
	hasten := flags.String("hasten", "/usr/bin/hasten", "the command")
	every := flags.Duration("every", 10*time.Second, "while hasten is off, how often new processes are told")
	folder := flags.String("node-folder", "", "the folder of this node that gets the libraries; none if pods have them from elsewhere")
	image := flags.String("image-folder", inject.ImageFolder, "the folder that has them")
	metrics := flags.String("metrics", ":9469", "where the counts of this node's pods are served; 0 for none")
	exporter := flags.String("exporter", "127.0.0.1:9468", "where `hasten export` serves them to this program")
	groups := flags.String("cgroups", "/sys/fs/cgroup", "the folder of the node's control groups, from which the CPU of pods is read")
	runtime := flags.String("runtime", "", "the socket of the container runtime, to find images that set LD_PRELOAD; not asked if empty")
	_ = flags.Parse(arguments)
	if *metrics == "0" {
		*metrics = ""
	}
	if *node == "" || *namespace == "" {
		return errors.New("--node and --namespace are needed: set NODE_NAME and POD_NAMESPACE, as the chart does")
	}
	api, err := client()
	if err != nil {
		return err
	}
	// Whoever asks for metrics uses up the calls of this one, and of no other.
	reviews, err := client()
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: api.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "hasten", Host: *node})
	return (&agent.Agent{API: api, Node: *node, Namespace: *namespace, Hasten: *hasten, Every: *every, Events: recorder,
		Folder: *folder, Image: *image, Exporter: *exporter, Metrics: *metrics, Reviews: reviews, Groups: *groups, Runtime: *runtime}).Run(ctx)
}

func runExplain(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("explain", flag.ExitOnError)
	namespace := flags.String("n", metav1.NamespaceDefault, "the pod's namespace")
	home := flags.String("home", "hasten-system", "the namespace of hasten's agents")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return errors.New("explain [-n NAMESPACE] pod/NAME: one pod is needed")
	}
	api, err := client()
	if err != nil {
		return err
	}
	text, err := explain.Pod(ctx, api, *home, *namespace, flags.Arg(0))
	if err == nil {
		_, err = io.WriteString(os.Stdout, text)
	}
	return err
}
