// Package rollout compares the accelerated pods of a canary with their stock siblings; holds it if they do worse; and, if
// asked to, goes on by itself, or takes back what it has done.
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

// Judge tests failures each time that their number has doubled, and costs each time that the time has. Each of the two spends Bound/4,
// /8, /16… on its tests, so that looking often does not make a false hold more likely than Bound. It is kept on the namespace:
// whoever looks next goes on where the last one stopped, and spends nothing twice.
type Judge struct {
	// Percent of new pods that are accelerated. Pods drawn by another percentage are of another age, which alone makes
	// failures more or less likely, and are not compared.
	Percent int `json:"percent"`
	// Looks that were spent, at any percentage.
	Looks int `json:"looks"`
	// Next is how many failures there have to be for the next look.
	Next int `json:"next"`
	// Since is when the percentage was seen first, in seconds since 1970.
	Since int64 `json:"since"`
	// CostLooks were spent on costs, and NextCost is when the next is due.
	CostLooks int   `json:"costLooks,omitempty"`
	NextCost  int64 `json:"nextCost,omitempty"`
}

// share of Bound for the look of this number at failures, or at costs.
func share(look int) float64 { return Bound / 2 * math.Pow(0.5, float64(look)) }

// At begins anew at another percentage, with what is left of Bound.
func (j Judge) At(percent int, now int64) Judge {
	if j.Since != 0 && j.Percent == percent {
		return j
	}
	return Judge{Percent: percent, Looks: j.Looks, Since: now, CostLooks: j.CostLooks}
}

// Look says with what probability chance explains the failures, and whether the canary is to be held. Nobody may learn the
// answer of a look that was not kept.
func (j Judge) Look(accelerated, stock Group) (after Judge, p float64, holds bool) {
	failed := accelerated.Failed + stock.Failed
	if failed < max(j.Next, 1) || accelerated.Pods == 0 || stock.Pods == 0 {
		return j, 1, false
	}
	j.Looks++
	j.Next = 2 * failed
	p = Worse(accelerated, stock)
	return j, p, p <= share(j.Looks)
}
