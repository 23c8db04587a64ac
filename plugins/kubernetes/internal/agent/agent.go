// Package agent does what has to be done on each node: it carries the kill switch into running pods, and tells each pod's
// owner by an event what was done to it, and why.
package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kubernetesruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/auth"
	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/library"
	"hasten.dev/kubernetes/internal/telemetry"
	"hasten.dev/kubernetes/internal/webhook"
)

// Agent is one node's.
type Agent struct {
	API             kubernetes.Interface
	Node, Namespace string
	// Hasten is the command, which reaches every accelerated process of the node.
	Hasten string
	// Every is how often processes that began meanwhile are told that hasten is off.
	Every  time.Duration
	Events record.EventRecorder
	// Folder of this node gets the libraries from Image, a folder of ours; empty if pods have them from elsewhere.
	Folder, Image string

	// Exporter is the address of `hasten export`, and Metrics where its counts are served with the names of pods; empty for
	// neither.
	Exporter, Metrics string
	// Reviews is asked who may read them.
	Reviews kubernetes.Interface
	// Groups is the folder of the node's control groups.
	Groups string

	// Runtime is the socket of the node's container runtime, which knows the images; empty if it is not to be asked.
	Runtime string

	images *images
	// looked has the containers whose images were looked at.
	looked sync.Map

	// failed is when the watch of the switch has failed last, in nanoseconds.
	failed atomic.Int64

	lock sync.Mutex
	// missing is why this node has no libraries.
	missing error
}

// unwatched is how long the switch is read after its watch has failed: longer than the longest pause before the watch is tried again.
const unwatched = 2 * time.Minute

// repair is how often the node's libraries are compared with the image's.
const repair = 10 * time.Minute

// Run works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	a.install(ctx)
	switched := make(chan bool, 1)
	pods := informers.NewSharedInformerFactoryWithOptions(a.API, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", a.Node).String()
		o.LabelSelector = inject.StateKey
	}))
	toggles := a.toggles()
	_, one := toggles.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(switched, object) },
		UpdateFunc: func(_, object any) { tell(switched, object) },
	})
	if a.Runtime != "" {
		var err error
		if a.images, err = newImages(a.Runtime); err != nil {
			return err
		}
	}
	begun := time.Now()
	_, two := pods.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { a.explain(object, begun) },
		UpdateFunc: func(_, object any) {
			if a.images != nil {
				a.replaced(ctx, object)
			}
		},
		DeleteFunc: a.forget,
	})
	if err := errors.Join(one, two); err != nil {
		return err
	}
	go toggles.RunWithContext(ctx)
	pods.Start(ctx.Done())
	if a.Metrics != "" {
		stop, err := a.serve(ctx, pods.Core().V1().Pods().Lister())
		if err != nil {
			return err
		}
		defer stop()
	}
	a.obey(ctx, switched)
	return nil
}

// toggles watches the switch, and notes each time that it cannot: the informer itself says nothing of connections that are refused,
// and tries again after ever longer pauses.
func (a *Agent) toggles() cache.SharedInformer {
	maps := a.API.CoreV1().ConfigMaps(a.Namespace)
	only := fields.OneTermEqualSelector("metadata.name", webhook.Switch).String()
	note := func(err error) {
		if err != nil {
			a.failed.Store(time.Now().UnixNano())
		}
	}
	calls := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (kubernetesruntime.Object, error) {
			options.FieldSelector = only
			found, err := maps.List(ctx, options)
			note(err)
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			watching, err := maps.Watch(ctx, options)
			note(err)
			return watching, err
		},
	}
	return cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(calls, a.API), &corev1.ConfigMap{}, 0)
}

// serve gives the counts of this node to those who may have them.
func (a *Agent) serve(ctx context.Context, pods listers.PodLister) (stop func(), err error) {
	listener, err := net.Listen("tcp", a.Metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics cannot be served: %w", err)
	}
	known := func() []*corev1.Pod {
		// What is in memory cannot fail.
		all, _ := pods.List(labels.Everything())
		return all
	}
	own := prometheus.NewRegistry()
	own.MustRegister(&collector{agent: a, pods: known})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &telemetry.Server{Exporter: a.Exporter, Pods: known, Own: own})
	mux.Handle("GET /facts", &facts{hasten: a.Hasten})
	mux.Handle("GET /cpu", &costs{pods: known, groups: a.Groups, client: http.Client{CheckRedirect: noRedirect}})
	filter := &auth.Filter{API: a.Reviews}
	server := &http.Server{Handler: filter.Wrap(mux), ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: auth.SelfSigned(a.Node)}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	exporting, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { telemetry.Export(exporting, a.Hasten, a.Exporter); close(ended) }()
	return func() { _ = server.Close(); end(); <-ended }, nil
}

// patience with one scrape.
const patience = 30 * time.Second

// collector counts what the agent itself knows.
type collector struct {
	agent *Agent
	pods  func() []*corev1.Pod
}

var (
	libraries = prometheus.NewDesc("hasten_node_libraries", "Whether this node has the libraries, if it is to have them.", nil, nil)
	states    = prometheus.NewDesc("hasten_pods", "Pods of this node by what became of them.", []string{"namespace", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- libraries; to <- states }

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	if c.agent.Folder != "" {
		has := 0.0
		if c.agent.lacks() == nil {
			has = 1
		}
		to <- prometheus.MustNewConstMetric(libraries, prometheus.GaugeValue, has)
	}
	counts := map[[2]string]float64{}
	for _, pod := range c.pods() {
		if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
			counts[[2]string{pod.Namespace, pod.Labels[inject.StateKey]}]++
		}
	}
	for key, count := range counts {
		to <- prometheus.MustNewConstMetric(states, prometheus.GaugeValue, count, key[0], key[1])
	}
}

// tell keeps the newest word only.
func tell(switched chan bool, object any) {
	toggle, ok := object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	select {
	case <-switched:
	default:
	}
	switched <- webhook.SwitchedOff(toggle.Data)
}

// obey takes every engine of every process out of service while hasten is off. Processes that begin meanwhile would have
// them, so it is said again and again. An API server that is gone changes nothing: the last word counts.
func (a *Agent) obey(ctx context.Context, switched <-chan bool) {
	tick, check := time.NewTicker(a.Every), time.NewTicker(repair)
	defer tick.Stop()
	defer check.Stop()
	off := a.wasOff()
	// Whoever ends between two steps knows more than is true, not less.
	hear := func(now bool) {
		if now && !off {
			a.remember(ctx, true)
		}
		if now || off {
			a.engine(ctx, now)
		}
		if off && !now && ctx.Err() == nil {
			a.remember(ctx, false)
		}
		off = now
	}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-switched:
			hear(now)
		case <-check.C:
			a.install(ctx)
		case <-tick.C:
			if time.Since(time.Unix(0, a.failed.Load())) < unwatched {
				if now, err := a.ask(ctx); err == nil {
					hear(now)
					continue
				}
			}
			if off {
				a.engine(ctx, true)
			}
		}
	}
}

// switchedOff is a file of the node's folder that is there while this node's engines are out of service: an agent that was away when the
// switch was turned on again puts them back. Without it, those that somebody has disabled by hand would be enabled by every restart.
const switchedOff = "switched-off"

func (a *Agent) wasOff() bool {
	_, err := os.Stat(filepath.Join(a.Folder, switchedOff))
	return a.Folder != "" && err == nil
}

func (a *Agent) remember(ctx context.Context, off bool) {
	if a.Folder == "" {
		return
	}
	path := filepath.Join(a.Folder, switchedOff)
	var err error
	if off {
		err = os.WriteFile(path, nil, 0o644)
	} else if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "an agent that restarts while the switch is turned will not know of it", "file", path)
	}
}

// ask reads the switch. It is for after a watch that has failed: an API server that is back is to be heard at once.
func (a *Agent) ask(ctx context.Context) (off bool, err error) {
	ctx, stop := context.WithTimeout(ctx, a.Every)
	defer stop()
	toggle, err := a.API.CoreV1().ConfigMaps(a.Namespace).Get(ctx, webhook.Switch, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return webhook.SwitchedOff(toggle.Data), nil
}

// install never ends the agent: pods on a node without libraries start, and are told.
func (a *Agent) install(ctx context.Context) {
	if a.Folder == "" {
		return
	}
	version, err := library.Install(a.Image, a.Folder)
	a.lock.Lock()
	a.missing = err
	a.lock.Unlock()
	if err != nil {
		log.FromContext(ctx).Error(err, "this node has no libraries: pods start without acceleration", "folder", a.Folder)
		return
	}
	log.FromContext(ctx).Info("this node has the libraries", "folder", a.Folder, "version", version)
}

func (a *Agent) lacks() error {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.missing
}

func (a *Agent) engine(ctx context.Context, off bool) {
	word := "enable"
	if off {
		word = "disable"
	}
	output, err := exec.CommandContext(ctx, a.Hasten, "engine", word, "all").CombinedOutput()
	var exit *exec.ExitError
	// 1 is also what it says if nothing is accelerated here.
	if err != nil && ctx.Err() == nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		log.FromContext(ctx).Error(err, "engines cannot be switched", "word", word, "output", string(bytes.TrimSpace(output)))
	}
}

// explain says once, when the pod has come to the node. Those that were here before the agent have been told.
func (a *Agent) explain(object any, begun time.Time) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.CreationTimestamp.Time.Before(begun.Add(-time.Minute)) {
		return
	}
	state, missing := inject.State(pod.Labels[inject.StateKey]), a.lacks()
	if state == inject.Accelerated && missing != nil {
		a.Events.Eventf(pod, corev1.EventTypeWarning, "HastenNodeNotReady", "the pod runs without acceleration, since its node has no libraries: %v", missing)
		return
	}
	if lost := inject.Overwritten(pod); state == inject.Accelerated && len(lost) > 0 {
		a.Events.Eventf(pod, corev1.EventTypeWarning, "HastenPreloadOverwritten", "%s: runs without acceleration, since another webhook has put its own LD_PRELOAD in place of hasten's; "+
			"let that one append to what is there, or be asked once only (reinvocationPolicy: Never)", strings.Join(lost, ", "))
		return
	}
	a.Events.Event(pod, corev1.EventTypeNormal, reasonOf(state), pod.Annotations[inject.Reasons])
}

func reasonOf(state inject.State) string {
	words := strings.Split(string(state), "-")
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return fmt.Sprintf("Hasten%s", strings.Join(words, ""))
}
