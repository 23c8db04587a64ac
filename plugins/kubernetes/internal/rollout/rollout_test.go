package rollout

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"hasten.dev/kubernetes/internal/inject"
)

// Fisher's tea: three of four guessed right, by chance with 17/70; all four with 1/70.
func TestKnownProbabilities(t *testing.T) {
	for want, groups := range map[float64][2]Group{
		17.0 / 70: {{4, 3}, {4, 1}},
		1.0 / 70:  {{4, 4}, {4, 0}},
		1:         {{4, 0}, {4, 4}},
	} {
		if got := Worse(groups[0], groups[1]); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v instead of %v", groups, got, want)
		}
	}
}

// play lets pods fail one after the other, looks after each, and says whether the canary was held.
func play(random *rand.Rand, harm float64) bool {
	var judge Judge
	accelerated, stock := Group{Pods: 100}, Group{Pods: 900}
	for range 1000 {
		if random.IntN(1000) < 100 {
			if random.Float64() < harm && accelerated.Failed < accelerated.Pods {
				accelerated.Failed++
			}
		} else if random.Float64() < 0.05 && stock.Failed < stock.Pods {
			stock.Failed++
		}
		if _, holds := judge.Holds(accelerated, stock); holds {
			return true
		}
	}
	return false
}

func TestAHarmlessCanaryIsSeldomHeldAndAHarmfulOneIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 2000
	held := map[float64]int{}
	for _, harm := range []float64{0.05, 0.6} {
		for range rounds {
			if play(random, harm) {
				held[harm]++
			}
		}
	}
	if float64(held[0.05]) > Bound*rounds {
		t.Errorf("%d of %d harmless canaries were held", held[0.05], rounds)
	}
	if held[0.6] < rounds*99/100 {
		t.Errorf("only %d of %d harmful canaries were held", held[0.6], rounds)
	}
}

func TestAFailingCanaryIsHeld(t *testing.T) {
	api := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1",
		Labels: map[string]string{inject.Inject: "enabled"}, Annotations: map[string]string{inject.Canary: "10"}}})
	now := time.Now()
	add := func(i int, state inject.State, restarts int32) {
		_, err := api.CoreV1().Pods("shop").Create(context.Background(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", state, i), Labels: map[string]string{inject.StateKey: string(state)}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		add(i, inject.Accelerated, 1)
		add(i, inject.Stock, 0)
	}
	watcher := Watcher{API: api, Every: time.Hour}
	if err := watcher.Look(context.Background(), now); err != nil {
		t.Fatal(err)
	}
	shop, _ := api.CoreV1().Namespaces().Get(context.Background(), "shop", metav1.GetOptions{})
	if why := shop.Annotations[inject.Held]; !strings.HasPrefix(why, "10 of 10 accelerated pods failed, 0 of 10 stock pods") {
		t.Errorf("held: %q", why)
	}
}
