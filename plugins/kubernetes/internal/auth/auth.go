// Package auth lets those read what is served here whom the API server knows and allows to: a TokenReview says who asks, and a
// SubjectAccessReview whether they may `get` that path, as for the metrics of Kubernetes' own components.
package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// Audience of tokens that are good for nothing but this.
	Audience = "hasten.dev"
	// Header of a token that comes through the API server's proxy, which keeps `Authorization` to itself.
	Header = "X-Hasten-Token"

	// yes and no are how long an answer is good for.
	yes = time.Minute
	no  = 10 * time.Second
	// alone is how long a yes is, while the API server does not answer: metrics are wanted then above all.
	alone = 15 * time.Minute
	// patience with the API server.
	patience = 5 * time.Second
	// most answers that are kept. Whoever guesses tokens makes it forget, which costs calls, and gives no rights.
	most = 1024
)

// Filter asks, and remembers for a moment.
type Filter struct {
	// API should have a client of its own, so that strangers cannot use up its rate of calls.
	API kubernetes.Interface

	lock  sync.Mutex
	known map[key]answer
	now   func() time.Time
}

type key struct {
	token [sha256.Size]byte
	path  string
}

type answer struct {
	status int
	when   time.Time
}

// Wrap protects a handler.
func (f *Filter) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if status := f.of(request); status != http.StatusOK {
			http.Error(writer, explained[status], status)
			return
		}
		next.ServeHTTP(writer, request)
	})
}

var explained = map[int]string{
	http.StatusUnauthorized:       "a bearer token of a service account of this cluster is needed",
	http.StatusForbidden:          "this account may not `get` this path: bind it to the ClusterRole hasten-reader",
	http.StatusServiceUnavailable: "the API server cannot be asked who this is",
}

// token that the request has.
func token(request *http.Request) string {
	scheme, text, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && text != "" {
		return strings.TrimSpace(text)
	}
	return request.Header.Get(Header)
}

func (f *Filter) of(request *http.Request) int {
	text := token(request)
	if text == "" {
		return http.StatusUnauthorized
	}
	now, id := f.clock(), key{sha256.Sum256([]byte(text)), request.URL.Path}
	f.lock.Lock()
	before, asked := f.known[id]
	f.lock.Unlock()
	age := now.Sub(before.when)
	if asked && (before.status == http.StatusOK && age < yes || age < no) {
		return before.status
	}
	ctx, stop := context.WithTimeout(request.Context(), patience)
	defer stop()
	status, err := f.ask(ctx, text, request.URL.Path)
	if err != nil {
		log.FromContext(ctx).Error(err, "the API server cannot be asked who reads this", "path", request.URL.Path)
		if asked && before.status == http.StatusOK && age < alone {
			return http.StatusOK
		}
		return http.StatusServiceUnavailable
	}
	f.keep(id, answer{status, now})
	return status
}

func (f *Filter) clock() time.Time {
	if f.now != nil {
		return f.now()
	}
	return time.Now()
}

func (f *Filter) keep(id key, one answer) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.known == nil || len(f.known) >= most {
		f.known = map[key]answer{}
	}
	f.known[id] = one
}

func (f *Filter) ask(ctx context.Context, text, path string) (int, error) {
	user, err := f.who(ctx, text)
	if err != nil || user == nil {
		return http.StatusUnauthorized, err
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review, err := f.API.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !review.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// who has the token: one of the API server's, as Prometheus has, or one for here only.
func (f *Filter) who(ctx context.Context, text string) (*authenticationv1.UserInfo, error) {
	for _, audiences := range [][]string{nil, {Audience}} {
		review, err := f.API.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: text, Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if review.Status.Authenticated {
			if review.Status.User.Username == "" {
				return nil, errors.New("a token without a user")
			}
			return &review.Status.User, nil
		}
	}
	return nil, nil
}
