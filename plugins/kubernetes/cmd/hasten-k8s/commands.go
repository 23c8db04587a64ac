package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/library"
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
	from := flags.String("libraries", string(inject.Node), "where pods get the libraries: node, copy, image")
	flags.StringVar(&options.NodeFolder, "node-folder", "/var/lib/kubelet/plugins/hasten.dev", "the folder on nodes that has them")
	flags.DurationVar(&options.LookEvery, "canary-interval", 30*time.Second, "how often canaries are looked at")
	flags.StringVar(&options.AgentToken, "agent-token", "", "the file with the token for agents, which say what the pods of canaries cost; not asked if empty")
	flags.IntVar(&options.AgentPort, "agent-port", 9469, "the port of agents")
	flags.StringVar(&options.Certificates, "certificates", "", "a folder with tls.crt and tls.key, which somebody else keeps; made and kept here if empty")
	excluded := flags.String("excluded", "", "namespaces that are never touched, separated by commas")
	_ = flags.Parse(arguments)
	options.Excluded = strings.FieldsFunc(*excluded, func(r rune) bool { return r == ',' })
	if options.Namespace == "" || options.Settings.Image == "" {
		return errors.New("--namespace and --image are needed: set POD_NAMESPACE and HASTEN_IMAGE, as the chart does")
	}
	var err error
	if options.Settings.From, err = inject.ParseSource(*from); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no API server: run this in a pod, or set KUBECONFIG: %w", err)
	}
	return webhook.Serve(ctx, config, options)
}

func runCopy(_ context.Context, arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("copy FROM TO: two folders are needed")
	}
	if err := library.Copy(arguments[0], arguments[1]); err != nil {
		// The pod starts: its loader goes on without what it does not find.
		fmt.Fprintln(os.Stderr, "hasten-k8s: this pod starts without acceleration:", err)
	}
	return nil
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
