package auth

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server answers reviews: who has which token for which audience, and who may read what.
type server struct {
	*fake.Clientset
	asked int
	gone  bool
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.asked++
		if s.gone {
			return true, nil, errors.New("connection refused")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		ours := len(review.Spec.Audiences) == 1 && review.Spec.Audiences[0] == Audience
		user := map[string]string{"prometheus": "monitor", "stranger": "tenant"}[review.Spec.Token]
		if ours {
			user = map[string]string{"webhook": "watcher"}[review.Spec.Token]
		}
		review.Status.Authenticated, review.Status.User.Username = user != "", user
		return true, review, nil
	})
	s.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = map[string]string{"monitor": "/metrics", "watcher": "/cpu"}[review.Spec.User] == review.Spec.NonResourceAttributes.Path &&
			review.Spec.NonResourceAttributes.Verb == "get"
		return true, review, nil
	})
	return s
}

func get(filter *Filter, path, header, value string) int {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if header != "" {
		request.Header.Set(header, value)
	}
	answer := httptest.NewRecorder()
	filter.Wrap(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(writer, "secret") })).ServeHTTP(answer, request)
	if leaked := answer.Body.String() == "secret"; leaked != (answer.Code == http.StatusOK) {
		return -1
	}
	return answer.Code
}

func TestOnlyThoseWhoMayReadWhatIsServed(t *testing.T) {
	filter := &Filter{API: newServer()}
	for _, c := range []struct {
		path, header, value string
		want                int
	}{
		{"/metrics", "", "", 401},
		{"/metrics", "Authorization", "Basic cHJvbWV0aGV1cw==", 401},
		{"/metrics", "Authorization", "Bearer ", 401},
		{"/metrics", "Authorization", "Bearer forged", 401},
		{"/metrics", "Authorization", "Bearer stranger", 403},
		{"/metrics", "Authorization", "Bearer prometheus", 200},
		{"/metrics", "Authorization", "bearer prometheus", 200},
		// Through the API server's proxy.
		{"/metrics", Header, "prometheus", 200},
		{"/metrics", Header, "forged", 401},
		// One path is not another.
		{"/facts", "Authorization", "Bearer prometheus", 403},
		{"/cpu?namespace=shop", "Authorization", "Bearer webhook", 200},
		{"/metrics", "Authorization", "Bearer webhook", 403},
	} {
		if got := get(filter, c.path, c.header, c.value); got != c.want {
			t.Errorf("%s %s %q: %d instead of %d", c.path, c.header, c.value, got, c.want)
		}
	}
}

func TestAnAnswerIsRememberedForAMomentAndWhileTheAPIServerIsGone(t *testing.T) {
	server, now := newServer(), time.Now()
	filter := &Filter{API: server, now: func() time.Time { return now }}
	scrape := func(token string, want, calls int) {
		t.Helper()
		before := server.asked
		if got := get(filter, "/metrics", "Authorization", "Bearer "+token); got != want || server.asked-before != calls {
			t.Errorf("%d after %d calls", got, server.asked-before)
		}
	}
	scrape("prometheus", 200, 1)
	scrape("prometheus", 200, 0)
	scrape("forged", 401, 2)
	scrape("forged", 401, 0)
	now = now.Add(yes + time.Second)
	scrape("prometheus", 200, 1)
	server.gone = true
	now = now.Add(yes + time.Second)
	scrape("prometheus", 200, 1)
	scrape("forged", 503, 1)
	scrape("new", 503, 1)
	// A right that was taken away meanwhile does not stay for ever.
	now = now.Add(alone)
	scrape("prometheus", 503, 1)
	server.gone = false
	scrape("prometheus", 200, 1)
}

func TestGuessersFillNoMemory(t *testing.T) {
	filter := &Filter{API: newServer()}
	for i := range 3 * most {
		get(filter, "/metrics", Header, string(rune('a'+i%26))+time.Duration(i).String())
	}
	if len(filter.known) > most {
		t.Errorf("%d answers are kept", len(filter.known))
	}
}
