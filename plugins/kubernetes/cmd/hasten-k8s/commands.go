package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hasten.dev/kubernetes/internal/copylib"
	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/webhook"
)

func runWebhook(ctx context.Context, arguments []string) error {
	ctrl.SetLogger(klog.NewKlogr())
	flags := flag.NewFlagSet("webhook", flag.ExitOnError)
	var options webhook.Options
	flags.StringVar(&options.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the namespace that this runs in")
	flags.StringVar(&options.Service, "service", "hasten-webhook", "the Service that the API server calls")
	flags.StringVar(&options.Configuration, "configuration", "hasten", "the MutatingWebhookConfiguration that is told whom to trust")
	flags.StringVar(&options.Host, "host", "", "address to listen on; all if empty")
	flags.IntVar(&options.Port, "port", 9443, "port to listen on")
	flags.StringVar(&options.Metrics, "metrics", ":8080", "address of the metrics; 0 for none")
	flags.StringVar(&options.Health, "health", ":8081", "address of the probes")
	flags.StringVar(&options.Settings.Image, "image", os.Getenv("HASTEN_IMAGE"), "the image that has the libraries")
	flags.StringVar((*string)(&options.Settings.PullPolicy), "pull-policy", "", "when that image is pulled")
	flags.BoolVar(&options.Settings.ImageVolumes, "image-volumes", false, "mount the image instead of copying from it; every node must be able to")
	flags.DurationVar(&options.LookEvery, "canary-interval", 30*time.Second, "how often canaries are looked at")
	_ = flags.Parse(arguments)
	if options.Namespace == "" || options.Settings.Image == "" {
		return errors.New("--namespace and --image are needed: set POD_NAMESPACE and HASTEN_IMAGE, as the chart does")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no API server: run this in a pod, or set KUBECONFIG: %w", err)
	}
	return webhook.Serve(ctx, config, options)
}

func runCopy(_ context.Context, arguments []string) error {
	if len(arguments) < 2 || len(arguments) > 3 || len(arguments) == 3 && arguments[2] != "--strict" {
		return errors.New("copy FROM TO [--strict]: two folders are needed")
	}
	err := copylib.Tree(arguments[0], arguments[1], "libhasten.so")
	if err != nil && len(arguments) == 2 {
		// The pod starts: its loaders go on without what they do not find.
		fmt.Fprintln(os.Stderr, "hasten-k8s: this pod starts without acceleration:", err)
		return nil
	}
	return err
}

// runPreview reads pods, and workloads that make pods, and says what a labelled namespace would do to each.
func runPreview(_ context.Context, arguments []string) error {
	flags := flag.NewFlagSet("preview", flag.ExitOnError)
	mixed := flags.Bool("mixed", false, "the cluster has nodes that are not amd64")
	_ = flags.Parse(arguments)
	decoder := yaml.NewYAMLOrJSONDecoder(os.Stdin, 4096)
	for {
		var object manifest
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("standard input has no manifest: %w", err)
		}
		for _, item := range append(object.Items, object) {
			if pod := item.pod(); pod != nil {
				decision := inject.Decide(pod, inject.Surroundings{OtherArchitectures: *mixed})
				fmt.Printf("%s/%s: %s\n%s\n", item.Kind, item.Metadata.Name, decision.State, indent(decision.Text()))
			}
		}
	}
}
