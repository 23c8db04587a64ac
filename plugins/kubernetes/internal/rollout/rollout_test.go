package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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
		var holds bool
		if judge, _, holds = judge.Look(accelerated, stock); holds {
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

// fleet is a namespace with a canary and its pods.
type fleet struct {
	*testing.T
	api *fake.Clientset
	now time.Time
}

func newFleet(t *testing.T, annotations map[string]string) *fleet {
	t.Helper()
	return &fleet{t, fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1",
		Labels: map[string]string{inject.Inject: "enabled"}, Annotations: annotations}}), time.Now()}
}

var ctx = context.Background()

func (f *fleet) add(n int, state inject.State, percent string, restarts int32) {
	f.Helper()
	yes := true
	for range n {
		_, err := f.api.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d-%d", state, percent, restarts, rand.Int64()), Namespace: "shop",
				Labels: map[string]string{inject.StateKey: string(state)}, Annotations: map[string]string{inject.Drawn: percent},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}}},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// look is that of a replica that has never looked before, as after each change of the leader.
func (f *fleet) look() map[string]string {
	f.Helper()
	if err := (&Watcher{API: f.api, Every: time.Hour}).Look(ctx, f.now); err != nil {
		f.Fatal(err)
	}
	return f.annotations()
}

func (f *fleet) annotations() map[string]string {
	f.Helper()
	shop, err := f.api.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return shop.Annotations
}

func (f *fleet) annotate(key, value string) {
	f.Helper()
	shop, _ := f.api.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
	shop.Annotations[key] = value
	if _, err := f.api.CoreV1().Namespaces().Update(ctx, shop, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func TestAFailingCanaryIsHeld(t *testing.T) {
	fleet := newFleet(t, map[string]string{inject.Canary: "10"})
	fleet.add(10, inject.Accelerated, "10", 1)
	fleet.add(10, inject.Stock, "10", 0)
	// What was drawn before the canary, or at another percentage, is older or younger, and says nothing.
	fleet.add(50, inject.Stock, "20", 1)
	if why := fleet.look()[inject.Held]; !strings.HasPrefix(why, "10 of 10 accelerated pods failed, 0 of 10 stock pods") {
		t.Errorf("held: %q", why)
	}
}

// If each leader began anew, each would have the whole probability of a false alarm for itself.
func TestANewLeaderSpendsNothingTwice(t *testing.T) {
	fleet := newFleet(t, map[string]string{inject.Canary: "10"})
	fleet.add(10, inject.Accelerated, "10", 0)
	fleet.add(10, inject.Stock, "10", 0)
	fleet.add(1, inject.Accelerated, "10", 1)
	want := Judge{Percent: 10, Looks: 1, Next: 2, Since: fleet.now.Unix()}
	for range 3 {
		var got Judge
		if err := json.Unmarshal([]byte(fleet.look()[inject.Judge]), &got); err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	fleet.add(1, inject.Stock, "10", 1)
	want.Looks, want.Next = 2, 4
	var got Judge
	if err := json.Unmarshal([]byte(fleet.look()[inject.Judge]), &got); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	// Nor does another percentage bring back what is spent; another canary does.
	fleet.annotate(inject.Canary, "20")
	if err := json.Unmarshal([]byte(fleet.look()[inject.Judge]), &got); err != nil || got.Looks != 2 || got.Next != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	shop, _ := fleet.api.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
	delete(shop.Annotations, inject.Canary)
	if _, err := fleet.api.CoreV1().Namespaces().Update(ctx, shop, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if text, said := fleet.look()[inject.Judge]; said {
		t.Errorf("the next canary would begin with %s", text)
	}
}

func TestACanaryGoesOnIfAskedTo(t *testing.T) {
	fleet := newFleet(t, map[string]string{inject.Canary: "30", inject.Promote: "20m"})
	step := func(percent string, pass time.Duration) {
		t.Helper()
		fleet.now = fleet.now.Add(pass)
		if got := fleet.look()[inject.Canary]; got != percent {
			t.Errorf("%s instead of %s", got, percent)
		}
	}
	step("30", 0)
	// Without pods, nothing was learnt.
	step("30", time.Hour)
	fleet.add(5, inject.Accelerated, "30", 0)
	fleet.add(5, inject.Stock, "30", 0)
	step("60", time.Second)
	fleet.add(5, inject.Accelerated, "60", 0)
	fleet.add(5, inject.Stock, "60", 0)
	step("60", time.Minute)
	step("60", 19*time.Minute)
	step("100", time.Minute)
	step("100", time.Hour)
}

func TestAHeldCanaryIsTakenBackIfAskedTo(t *testing.T) {
	fleet := newFleet(t, map[string]string{inject.Canary: "10", inject.Held: "it restarts"})
	fleet.add(1, inject.Accelerated, "10", 3)
	fleet.add(30, inject.Accelerated, "10", 0)
	var evicted []string
	fleet.api.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		name := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
		evicted = append(evicted, name)
		return true, nil, fleet.api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", name)
	})
	fleet.look()
	if len(evicted) != 0 {
		t.Fatal("nobody asked for that")
	}
	fleet.annotate(inject.Withdraw, "enabled")
	fleet.look()
	if len(evicted) != 1 || !strings.HasPrefix(evicted[0], "accelerated-10-3-") {
		t.Errorf("the one that restarts goes first, alone: %v", evicted)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "successor", Labels: map[string]string{inject.StateKey: string(inject.HeldState)}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if _, err := fleet.api.CoreV1().Pods("shop").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fleet.look()
	if len(evicted) != 1 {
		t.Error("its successor is not there yet")
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err := fleet.api.CoreV1().Pods("shop").Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fleet.look()
	if len(evicted) != 2 {
		t.Errorf("%v", evicted)
	}
}
