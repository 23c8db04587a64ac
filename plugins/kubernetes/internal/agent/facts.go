package agent

import (
	"context"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// fresh is how long an answer is good for: nobody makes this node look at itself more often than that.
const fresh = time.Minute

// facts of this node are what `hasten check --json` says.
type facts struct {
	hasten string

	lock sync.Mutex
	text []byte
	when time.Time
}

// ServeHTTP gives them.
func (f *facts) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	text, err := f.read(request.Context())
	if err != nil {
		http.Error(answer, "hasten check: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	_, _ = answer.Write(text)
}

func (f *facts) read(ctx context.Context) ([]byte, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.text != nil && time.Since(f.when) < fresh {
		return f.text, nil
	}
	text, err := exec.CommandContext(ctx, f.hasten, "check", "--json").Output()
	if err == nil {
		f.text, f.when = text, time.Now()
	}
	return text, err
}
