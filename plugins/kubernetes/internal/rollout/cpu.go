package rollout

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"hasten.dev/kubernetes/internal/inject"
)

const (
	// firstCost is how long a percentage has been there before costs are compared; after that, each time that the time has doubled.
	firstCost = 10 * time.Minute
	// sample is from how many pods of each kind the cost is asked. It bounds the calls of one look, whatever the size of the canary.
	sample = 100
	// atOnce is how many agents are asked at the same time.
	atOnce = 8
)

// Cost is what a pod has used since its start.
type Cost struct {
	// CPU time in seconds, and for how long the pod runs.
	CPU     float64 `json:"cpuSeconds"`
	Seconds float64 `json:"seconds"`
	// Requests that it has answered, if it exports that.
	Requests *float64 `json:"requests,omitempty"`
}

// Costs asks the agent of a node for its pods of a namespace; metric is what counts their requests, or empty.
type Costs func(ctx context.Context, node, namespace, metric string) (map[types.UID]Cost, error)

var ratios = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hasten_canary_cpu_ratio",
	Help: "CPU of accelerated pods of a canary as a multiple of that of stock pods, and its interval."}, []string{"namespace", "of", "bound"})

func init() { metrics.Registry.MustRegister(ratios) }

// At which time costs are compared next.
func (j Judge) costDue(now time.Time) bool {
	return j.Since != 0 && now.Unix() >= max(j.NextCost, j.Since+int64(firstCost.Seconds()))
}

// spendCost begins a look at costs, and gives what it may spend of Bound.
func (j Judge) spendCost(now time.Time) (Judge, float64) {
	j.CostLooks++
	j.NextCost = now.Unix() + (now.Unix() - j.Since)
	return j, share(j.CostLooks)
}

// compareCost says why the canary is to be held, if it is, and what was found in any case.
func (w *Watcher) compareCost(ctx context.Context, namespace *corev1.Namespace, judge Judge, accelerated, stock []*corev1.Pod, left float64) (why, found string, err error) {
	random := rand.New(rand.NewPCG(seed(namespace.UID), uint64(judge.CostLooks)))
	accelerated, stock = draw(accelerated, random), draw(stock, random)
	if len(accelerated) < fewest || len(stock) < fewest {
		return "", "", nil
	}
	costs, err := w.ask(ctx, namespace, append(append([]*corev1.Pod{}, accelerated...), stock...))
	per := "request"
	a, b := perRequest(accelerated, costs), perRequest(stock, costs)
	if len(a) < fewest || len(b) < fewest {
		per = "pod"
		a, b = perSecond(accelerated, costs), perSecond(stock, costs)
	}
	ratio, p, ok := Compare(a, b, left)
	if !ok {
		return "", "", err
	}
	for bound, value := range map[string]float64{"value": ratio.Value, "low": ratio.Low, "high": ratio.High} {
		ratios.WithLabelValues(namespace.Name, per, bound).Set(value)
	}
	found = fmt.Sprintf("CPU per %s is %s times that of stock pods: %s; %d and %d pods", per, ratio, ratio.verdict(), len(a), len(b))
	if ratio.Dearer(p, left) {
		return fmt.Sprintf("accelerated pods cost more: %s (p = %.2g)", found, p), found, nil
	}
	return "", found, nil
}

func seed(uid types.UID) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uid))
	return hash.Sum64()
}

// draw takes so many pods at random, not the first ones of a list: their names have their age in them.
func draw(pods []*corev1.Pod, random *rand.Rand) []*corev1.Pod {
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return pods[:min(len(pods), sample)]
}

// ask asks the agents of the nodes that have these pods. One that does not answer takes pods of both kinds away.
func (w *Watcher) ask(ctx context.Context, namespace *corev1.Namespace, pods []*corev1.Pod) (map[types.UID]Cost, error) {
	nodes := make(chan string)
	var lock sync.Mutex
	var failed error
	all := map[types.UID]Cost{}
	var askers sync.WaitGroup
	for range atOnce {
		askers.Go(func() {
			for node := range nodes {
				costs, err := w.Costs(ctx, node, namespace.Name, namespace.Annotations[inject.Requests])
				lock.Lock()
				for uid, cost := range costs {
					all[uid] = cost
				}
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("the agent of node %s does not say what pods cost: %w", node, err))
				}
				lock.Unlock()
			}
		})
	}
	seen := map[string]bool{}
	for _, pod := range pods {
		if node := pod.Spec.NodeName; node != "" && !seen[node] {
			seen[node] = true
			nodes <- node
		}
	}
	close(nodes)
	askers.Wait()
	return all, failed
}

// fewestRequests of a pod whose cost of one means anything.
const fewestRequests = 100

func perRequest(pods []*corev1.Pod, costs map[types.UID]Cost) (all []float64) {
	for _, pod := range pods {
		if cost := costs[pod.UID]; cost.Requests != nil && *cost.Requests >= fewestRequests {
			all = append(all, cost.CPU / *cost.Requests)
		}
	}
	return all
}

func perSecond(pods []*corev1.Pod, costs map[types.UID]Cost) (all []float64) {
	for _, pod := range pods {
		if cost := costs[pod.UID]; cost.Seconds > 0 {
			all = append(all, cost.CPU/cost.Seconds)
		}
	}
	return all
}
