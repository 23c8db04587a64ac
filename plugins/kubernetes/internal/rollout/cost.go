package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// NoiseFloor is that of `hasten bench` (core/evidence): a smaller effect is not called a difference.
	NoiseFloor = 0.01
	// resamples as there: enough for the second decimal of the interval's tails.
	resamples = 2000
	// fewest pods of a kind of which anything is said.
	fewest = 6
	// enough hits say what a probability is, without going on to the end (Besag and Clifford 1991, Sequential Monte Carlo p-values).
	enough = 20
	// most draws, however rare the hits are that are looked for.
	most = 100_000
)

// Ratio is how many times as much an accelerated pod costs, and the interval that has the truth in 95 of 100 canaries.
type Ratio struct{ Value, Low, High float64 }

// Compare compares what pods cost as core/evidence does: the trimmed mean of logarithms, and a bootstrap interval, wider for few pods.
// Pods, not points in time, are what is drawn at random: a pod that has more to do than others has it all day. P is the probability
// that chance alone makes accelerated pods so much dearer or more, from drawing again which pods are the accelerated ones; it is
// exact, whatever costs are distributed like, and as fine as is needed to tell whether it is below left. Costs that are not above zero
// are left out.
func Compare(accelerated, stock []float64, left float64) (ratio Ratio, p float64, ok bool) {
	a, b := logarithms(accelerated), logarithms(stock)
	if len(a) < fewest || len(b) < fewest {
		return Ratio{}, 1, false
	}
	// The same numbers always give the same answer: another replica may ask again.
	random := rand.New(rand.NewPCG(0x6861_7374_656e, 0))
	difference := trimmed(a) - trimmed(b)
	low, high := interval(a, b, difference, random)
	return Ratio{math.Exp(difference), math.Exp(min(low, difference)), math.Exp(max(high, difference))}, byChance(a, b, difference, left, random), true
}

// Dearer says whether the accelerated pods are to be held for it, at what is left of the probability of a false alarm.
func (r Ratio) Dearer(p, left float64) bool { return p <= left && r.Value > 1+NoiseFloor }

func (r Ratio) verdict() string {
	switch {
	case r.Low > 1 && r.Value > 1+NoiseFloor:
		return "more"
	case r.High < 1 && r.Value < 1/(1+NoiseFloor):
		return "less"
	}
	return "no difference"
}

func (r Ratio) String() string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", r.Value, r.Low, r.High)
}

func logarithms(values []float64) []float64 {
	var all []float64
	for _, value := range values {
		if log := math.Log(value); value > 0 && !math.IsInf(log, 0) {
			all = append(all, log)
		}
	}
	return all
}

// trimmed is the mean without the lowest and the highest fifth. It sorts the values.
func trimmed(values []float64) float64 {
	slices.Sort(values)
	cut := len(values) / 5
	kept, sum := values[cut:len(values)-cut], 0.0
	for _, value := range kept {
		sum += value
	}
	return sum / float64(len(kept))
}

// interval is the bias-corrected one of the bootstrap, each kind resampled by itself.
func interval(a, b []float64, observed float64, random *rand.Rand) (low, high float64) {
	one, two := make([]float64, len(a)), make([]float64, len(b))
	all := make([]float64, resamples)
	below := 0.0
	for i := range all {
		for j := range one {
			one[j] = a[random.IntN(len(a))]
		}
		for j := range two {
			two[j] = b[random.IntN(len(b))]
		}
		all[i] = trimmed(one) - trimmed(two)
		switch {
		case all[i] < observed:
			below++
		case all[i] == observed:
			below += 0.5
		}
	}
	slices.Sort(all)
	edge := 1.0 / (resamples + 1)
	bias := normalQuantile(min(max(below/resamples, edge), 1-edge))
	bound := func(tail float64) float64 {
		position := normal(2*bias+normalQuantile(tail)) * (resamples - 1)
		under := int(position)
		over := min(under+1, resamples-1)
		return all[under] + (all[over]-all[under])*(position-float64(under))
	}
	tail := max(tailOf(min(len(a), len(b))), 0.5/resamples)
	return bound(tail), bound(1 - tail)
}

// tailOf is what to ask of the bootstrap on each side so that about 2.5 % comes out (Hesterberg 2015, section 5.3): with few
// values it knows neither that their spread is an estimate nor that this is biased.
func tailOf(count int) float64 {
	n := float64(count)
	return normal(-math.Sqrt(n/(n-1)) * student(n-1))
}

// student is the upper 2.5 % of Student's distribution (Cornish and Fisher's expansion; three digits from five degrees on).
func student(degrees float64) float64 {
	const z = 1.959964
	z2 := z * z
	return z + z*((z2+1)/(4*degrees)+((5*z2+16)*z2+3)/(96*degrees*degrees)+(((3*z2+19)*z2+17)*z2-15)/(384*degrees*degrees*degrees))
}

func normal(z float64) float64         { return math.Erfc(-z/math.Sqrt2) / 2 }
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// byChance draws again which pods are accelerated.
func byChance(a, b []float64, observed, left float64, random *rand.Rand) float64 {
	all := slices.Concat(a, b)
	one, two := make([]float64, len(a)), make([]float64, len(b))
	last := min(most, int(2*enough/left))
	hits := 0
	for draws := 1; draws <= last; draws++ {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		copy(one, all)
		copy(two, all[len(a):])
		// Sums in another order differ in the last digits.
		if trimmed(one)-trimmed(two) >= observed-1e-12 {
			if hits++; hits == enough {
				return float64(hits) / float64(draws)
			}
		}
	}
	return float64(hits+1) / float64(last+1)
}
