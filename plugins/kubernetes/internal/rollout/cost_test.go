package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hasten.dev/kubernetes/internal/inject"
)

// costly are pods of which each has as much to do as it likes.
func costly(random *rand.Rand, n int, factor float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = factor * math.Exp(0.3*random.NormFloat64())
	}
	return all
}

func TestKnownQuantiles(t *testing.T) {
	for degrees, want := range map[float64]float64{5: 2.5706, 10: 2.2281, 30: 2.0423, 1000: 1.9623} {
		if got := student(degrees); math.Abs(got-want) > 0.005 {
			t.Errorf("%v: %v", degrees, got)
		}
	}
	if got := trimmed([]float64{100, 1, 2, 3, -100}); got != 2 {
		t.Error(got)
	}
}

func TestTheIntervalHoldsTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rounds = 200
	missed := 0
	for range rounds {
		ratio, _, ok := Compare(costly(random, 10, 1.5), costly(random, 20, 1), 0.5)
		if !ok || ratio.Low > ratio.Value || ratio.Value > ratio.High {
			t.Fatal(ratio)
		}
		if ratio.Low > 1.5 || ratio.High < 1.5 {
			missed++
		}
	}
	if missed > rounds*9/100 {
		t.Errorf("the interval missed it in %d of %d cases", missed, rounds)
	}
}

// kept says whether a canary outlives three looks.
func kept(random *rand.Rand, factor float64) bool {
	for look := 1; look <= 3; look++ {
		a, b := logarithms(costly(random, 15, factor)), logarithms(costly(random, 30, 1))
		difference := trimmed(a) - trimmed(b)
		if (Ratio{Value: math.Exp(difference)}).Dearer(byChance(a, b, difference, share(look), random), share(look)) {
			return false
		}
	}
	return true
}

func TestCheapCanariesAreSeldomHeldAndDearOnesAre(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	held := map[float64]int{}
	rounds := map[float64]int{0.8: 100, 1: 1000, 1.6: 40}
	for _, factor := range []float64{0.8, 1, 1.6} {
		for range rounds[factor] {
			if !kept(random, factor) {
				held[factor]++
			}
		}
	}
	// Half of Bound is for costs, for all looks together; three standard deviations are this test's own luck.
	expected := Bound / 2 * float64(rounds[1])
	if float64(held[1]) > expected+3*math.Sqrt(expected) || held[0.8] > 0 {
		t.Errorf("canaries were held that cost no more: %v of %v", held, rounds)
	}
	if held[1.6] < rounds[1.6]*95/100 {
		t.Errorf("canaries that cost more by the half were not held: %v of %v", held, rounds)
	}
}

func TestAnEffectBelowTheNoiseIsNone(t *testing.T) {
	same := func(value float64) (all []float64) {
		for i := range 50 {
			all = append(all, value*(1+float64(i)*1e-6))
		}
		return all
	}
	ratio, p, ok := Compare(same(1.008), same(1), 0.005)
	if !ok || p > 0.001 || ratio.Low <= 1 || ratio.Dearer(p, 0.005) || ratio.verdict() != "no difference" {
		t.Errorf("%v %v", ratio, p)
	}
	if _, _, ok := Compare([]float64{1, 2, 3, 0, math.Inf(1), math.NaN(), 4}, same(1), 0.005); ok {
		t.Error("four pods are too few")
	}
}

// priced is a fleet whose agents say what pods cost.
func priced(t *testing.T, annotations map[string]string, cost func(pod *corev1.Pod) Cost) (*fleet, func() map[string]string) {
	t.Helper()
	f := newFleet(t, annotations)
	asked := func(_ context.Context, node, namespace, _ string) (map[types.UID]Cost, error) {
		pods, err := f.api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		all := map[types.UID]Cost{}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == node {
				all[pods.Items[i].UID] = cost(&pods.Items[i])
			}
		}
		return all, err
	}
	return f, func() map[string]string {
		t.Helper()
		if err := (&Watcher{API: f.api, Every: time.Hour, Costs: asked}).Look(ctx, f.now); err != nil {
			t.Fatal(err)
		}
		return f.annotations()
	}
}

// steady adds pods that have been ready for long, on some nodes.
func (f *fleet) steady(n int, state inject.State) {
	f.Helper()
	begun := metav1.NewTime(f.now.Add(-time.Hour))
	for i := range n {
		name := fmt.Sprintf("%s-%d", state, i)
		_, err := f.api.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{inject.StateKey: string(state)}, Annotations: map[string]string{inject.Drawn: "10"}},
			Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%3)}, Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &begun},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
	}
}

func TestACanaryThatCostsMoreIsHeld(t *testing.T) {
	for _, c := range []struct{ per, requests string }{{"request", "http_requests_total"}, {"pod", ""}} {
		random := rand.New(rand.NewPCG(7, 8))
		var lock sync.Mutex
		fleet, look := priced(t, map[string]string{inject.Canary: "10", inject.Requests: c.requests}, func(pod *corev1.Pod) Cost {
			lock.Lock()
			defer lock.Unlock()
			// Pods have different loads. By the request they cost the same, but for the accelerated ones; without requests, too.
			load := 1000 + 9000*random.Float64()
			cost := Cost{CPU: 10 * (1 + 0.1*random.Float64()), Seconds: 1000}
			if c.requests != "" {
				cost.Requests, cost.CPU = &load, load*(1+0.1*random.Float64())
			}
			if pod.Labels[inject.StateKey] == string(inject.Accelerated) {
				cost.CPU *= 1.4
			}
			return cost
		})
		fleet.steady(12, inject.Accelerated)
		fleet.steady(24, inject.Stock)
		if why, held := look()[inject.Held]; held {
			t.Errorf("at once: %s", why)
		}
		fleet.now = fleet.now.Add(firstCost)
		want := "accelerated pods cost more: CPU per " + c.per + " is 1."
		if now := look(); !strings.HasPrefix(now[inject.Held], want) || !strings.Contains(now[inject.CanaryCPU], "more; 12 and 24 pods") {
			t.Errorf("%q, %q", now[inject.Held], now[inject.CanaryCPU])
		}
	}
}

func TestCostsAreLookedAtEachTimeThatTheTimeHasDoubled(t *testing.T) {
	looks := 0
	fleet, look := priced(t, map[string]string{inject.Canary: "10"}, func(pod *corev1.Pod) Cost {
		looks++
		return Cost{CPU: 10 + float64(len(pod.Name)), Seconds: 1000}
	})
	fleet.steady(6, inject.Accelerated)
	fleet.steady(6, inject.Stock)
	begun := fleet.now
	var at []int
	for minute := range 200 {
		fleet.now = begun.Add(time.Duration(minute) * time.Minute)
		before := looks
		now := look()
		if _, held := now[inject.Held]; held {
			t.Fatal(now)
		}
		if looks > before {
			at = append(at, minute)
		}
	}
	if got := fmt.Sprint(at); got != "[10 20 40 80 160]" {
		t.Error(got)
	}
	var judge Judge
	if err := json.Unmarshal([]byte(fleet.annotations()[inject.Judge]), &judge); err != nil || judge.CostLooks != 5 {
		t.Errorf("%+v %v", judge, err)
	}
	// Another percentage has other pods, and what was spent stays so.
	if next := judge.At(20, fleet.now.Unix()); next.CostLooks != 5 || next.costDue(fleet.now) {
		t.Errorf("%+v", next)
	}
}

func TestAgentsThatDoNotAnswerHoldNothing(t *testing.T) {
	log.SetLogger(logr.Discard())
	fleet := newFleet(t, map[string]string{inject.Canary: "10"})
	fleet.steady(8, inject.Accelerated)
	fleet.steady(8, inject.Stock)
	watcher := &Watcher{API: fleet.api, Every: time.Hour, Costs: func(context.Context, string, string, string) (map[types.UID]Cost, error) {
		return nil, errors.New("no answer")
	}}
	for range 3 {
		if err := watcher.Look(ctx, fleet.now); err != nil {
			t.Fatal(err)
		}
		fleet.now = fleet.now.Add(firstCost)
	}
	if now := fleet.annotations(); now[inject.Held] != "" || now[inject.CanaryCPU] != "" {
		t.Error(now)
	}
}

// Of a large canary, so many are asked, whoever they are.
func TestTheSampleIsBoundedAndDrawnAtRandom(t *testing.T) {
	fleet := newFleet(t, map[string]string{inject.Canary: "10"})
	var pods []*corev1.Pod
	for i := range 5000 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}, Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i)}})
	}
	var lock sync.Mutex
	calls := 0
	watcher := &Watcher{API: fleet.api, Costs: func(_ context.Context, node, _, _ string) (map[types.UID]Cost, error) {
		lock.Lock()
		defer lock.Unlock()
		calls++
		return map[types.UID]Cost{types.UID(strings.TrimPrefix(node, "node-")): {CPU: 1, Seconds: 10}}, nil
	}}
	shop, err := fleet.api.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := watcher.compareCost(ctx, shop, Judge{CostLooks: 1}, pods[:2500], pods[2500:], 0.001)
	if err != nil || calls != 2*sample || !strings.HasSuffix(found, fmt.Sprintf("no difference; %d and %d pods", sample, sample)) {
		t.Errorf("%d calls: %q %v", calls, found, err)
	}
}
