package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"hasten.dev/kubernetes/internal/auth"
	"hasten.dev/kubernetes/internal/certs"
	"hasten.dev/kubernetes/internal/claims"
	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/rollout"
)

// Options of `hasten-k8s webhook`.
type Options struct {
	Namespace, Service, Configuration string
	Host                              string
	Port                              int
	Metrics, Health                   string
	Settings                          inject.Settings
	LookEvery                         time.Duration
	// NodeFolder is where nodes have the libraries.
	NodeFolder string
	// Excluded namespaces are never asked about.
	Excluded []string
	// AgentToken is a file with a token for agents, and AgentPort is theirs.
	AgentToken string
	AgentPort  int
	// Certificates is a folder that somebody else keeps a certificate in; empty if it is kept here.
	Certificates string
}

// Serve runs until the context ends.
func Serve(ctx context.Context, config *rest.Config, options Options) error {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("no client of the API server: %w", err)
	}
	// Whoever asks for metrics uses up the calls of this one, and of no other.
	reviews, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("no client of the API server: %w", err)
	}
	keeper, err := certificates(api, options)
	if err != nil {
		return err
	}
	shown := []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = keeper.Certificate }}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Cache: Cached(options.Namespace, options.Settings.From),
		Metrics: metrics.Options{BindAddress: options.Metrics, SecureServing: true, TLSOpts: shown,
			FilterProvider: func(*rest.Config, *http.Client) (metrics.Filter, error) {
				filter := &auth.Filter{API: reviews}
				return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return filter.Wrap(handler), nil }, nil
			}},
		HealthProbeBindAddress: options.Health,
		LeaderElection:         true, LeaderElectionID: "hasten-webhook", LeaderElectionNamespace: options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer:                 webhook.NewServer(webhook.Options{Host: options.Host, Port: options.Port, TLSOpts: shown}),
	})
	if err != nil {
		return fmt.Errorf("the webhook cannot be set up: %w", err)
	}
	// Watched from the start: a first question should not wait for a list.
	watched := []client.Object{&corev1.Namespace{}, &corev1.Node{}, &corev1.ConfigMap{}}
	if options.Settings.From == inject.Node {
		watched = append(watched, &corev1.PersistentVolumeClaim{})
	}
	for _, object := range watched {
		if _, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	if err := parts(mgr, api, keeper, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// keeper of a certificate.
type keeper interface {
	Run(context.Context) error
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Ready() error
}

func certificates(api kubernetes.Interface, options Options) (keeper, error) {
	if options.Certificates != "" {
		return certs.Read(options.Certificates)
	}
	return &certs.Keeper{API: api, Namespace: options.Namespace, Service: options.Service, Configuration: options.Configuration}, nil
}

func parts(mgr ctrl.Manager, api kubernetes.Interface, keeper keeper, options Options) error {
	handler := &Handler{Around: &Cluster{Reader: mgr.GetClient(), Namespace: options.Namespace, From: options.Settings.From}, Settings: options.Settings}
	mgr.GetWebhookServer().Register("/mutate", &webhook.Admission{Handler: handler})
	// A canary is looked after by one replica; certificates and answers by each.
	if options.Settings.From == inject.Node {
		reconciler := &claims.Reconciler{API: api, Cached: mgr.GetClient(), Folder: options.NodeFolder, Owner: options.Configuration,
			Excluded: append([]string{"kube-system", options.Namespace}, options.Excluded...)}
		if err := reconciler.Add(mgr); err != nil {
			return err
		}
	}
	watcher := &rollout.Watcher{API: api, Every: options.LookEvery}
	if options.AgentToken != "" {
		watcher.Costs = rollout.Agents(api, options.Namespace, options.AgentPort, options.AgentToken)
	}
	return errors.Join(
		mgr.Add(everywhere{manager.RunnableFunc(keeper.Run)}),
		mgr.Add(manager.RunnableFunc(watcher.Run)),
		mgr.AddReadyzCheck("certificate", func(*http.Request) error { return keeper.Ready() }),
		mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }),
	)
}

// everywhere is what does not wait to be elected.
type everywhere struct{ manager.Runnable }

func (everywhere) NeedLeaderElection() bool { return false }
