// Package rollout compares the accelerated pods of a canary with their stock siblings, and holds it if they do worse.
package rollout

import "math"

// Bound is the probability that a canary that does no harm is ever held.
const Bound = 0.01

// Group is pods of one kind, and how many of them failed: restarted, or not ready in time.
type Group struct{ Pods, Failed int }

// Worse gives the probability that so many or more of the failures hit the accelerated pods, if it makes no difference which
// pods are accelerated (Fisher's exact test, one-sided).
func Worse(accelerated, stock Group) float64 {
	all, failed := accelerated.Pods+stock.Pods, accelerated.Failed+stock.Failed
	sum := 0.0
	for hit := accelerated.Failed; hit <= min(failed, accelerated.Pods); hit++ {
		if failed-hit > stock.Pods {
			continue
		}
		sum += math.Exp(choose(accelerated.Pods, hit) + choose(stock.Pods, failed-hit) - choose(all, failed))
	}
	return math.Min(sum, 1)
}

// choose is the logarithm of a binomial coefficient.
func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Judge tests each time that the number of failures has doubled, and spends Bound/2, /4, /8… on these tests, so that looking
// often does not make a false hold more likely than Bound.
type Judge struct {
	looks int
	next  int
}

// Holds says whether the canary is to be held now.
func (j *Judge) Holds(accelerated, stock Group) (float64, bool) {
	failed := accelerated.Failed + stock.Failed
	if failed < max(j.next, 1) || accelerated.Pods == 0 || stock.Pods == 0 {
		return 1, false
	}
	j.looks++
	j.next = 2 * failed
	p := Worse(accelerated, stock)
	return p, p <= Bound*math.Pow(0.5, float64(j.looks))
}
