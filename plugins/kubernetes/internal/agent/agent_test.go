package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"hasten.dev/kubernetes/internal/inject"
	"hasten.dev/kubernetes/internal/webhook"
)

// eventually is generous: the machine may be busy.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal("never happened: " + what)
}

func TestTheSwitchReachesProcessesAndPodsAreExplained(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	folder := t.TempDir()
	said := filepath.Join(folder, "said")
	hasten := filepath.Join(folder, "hasten")
	if err := os.WriteFile(hasten, []byte("#!/bin/sh\necho \"$@\" >>"+said+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	toggle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: webhook.Switch, Namespace: "hasten-system"}, Data: map[string]string{"accelerate": "on"}}
	api := fake.NewClientset(toggle, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", CreationTimestamp: metav1.Now(),
		Labels: map[string]string{inject.StateKey: "left-alone"}, Annotations: map[string]string{inject.Reasons: "web: because"}}, Spec: corev1.PodSpec{NodeName: "one"}})
	events := record.NewFakeRecorder(10)
	done := make(chan error, 1)
	// Libraries that cannot be had keep the agent from nothing else.
	agent := &Agent{Folder: filepath.Join(folder, "node"), Image: filepath.Join(folder, "nothing"), API: api, Node: "one", Namespace: "hasten-system", Hasten: hasten, Every: 20 * time.Millisecond, Events: events}
	go func() { done <- agent.Run(ctx) }()

	select {
	case event := <-events.Events:
		if event != "Normal HastenLeftAlone web: because" {
			t.Error(event)
		}
	case <-time.After(time.Minute):
		t.Fatal("no event")
	}
	count := func(line string) int {
		text, _ := os.ReadFile(said)
		return strings.Count(string(text), line+"\n")
	}
	set := func(word string) {
		t.Helper()
		changed := toggle.DeepCopy()
		changed.Data["accelerate"] = word
		if _, err := api.CoreV1().ConfigMaps("hasten-system").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if count("engine enable all") != 0 {
		t.Error("what somebody has disabled by hand was enabled, though nobody had switched anything")
	}
	// A fake server may miss what is changed before the watch has begun, so it is said until it is heard.
	eventually(t, "off, and again for later processes", func() bool { set("off"); return count("engine disable all") > 2 })
	eventually(t, "on", func() bool { set("on"); return count("engine enable all") > 0 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Whoever turns the switch on again while an agent restarts, as in an upgrade, is heard by the next one.
func TestTheSwitchIsTurnedWhileTheAgentIsAway(t *testing.T) {
	folder := t.TempDir()
	said, hasten := filepath.Join(folder, "said"), filepath.Join(folder, "hasten")
	if err := os.WriteFile(hasten, []byte("#!/bin/sh\necho \"$@\" >>"+said+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(folder, "node")
	if err := os.Mkdir(node, 0o755); err != nil {
		t.Fatal(err)
	}
	heard := func(word string) bool {
		text, _ := os.ReadFile(said)
		return strings.HasSuffix(string(text), "engine "+word+" all\n")
	}
	// until an agent, which begins with a switch that says so, has heard it.
	until := func(data map[string]string, is func() bool) {
		t.Helper()
		ctx, stop := context.WithCancel(context.Background())
		api := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: webhook.Switch, Namespace: "hasten-system"}, Data: data})
		agent := &Agent{Folder: node, Image: filepath.Join(folder, "nothing"), API: api, Node: "one", Namespace: "hasten-system", Hasten: hasten, Every: time.Hour, Events: record.NewFakeRecorder(10)}
		done := make(chan error, 1)
		go func() { done <- agent.Run(ctx) }()
		eventually(t, "it is heard", is)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	until(map[string]string{"accelerate": "off"}, func() bool { return heard("disable") })
	// As the chart makes it, and as it is once somebody has removed the word.
	// Otherwise the next agent would enable what somebody has disabled by hand.
	until(nil, func() bool {
		_, err := os.Stat(filepath.Join(node, "switched-off"))
		return heard("enable") && os.IsNotExist(err)
	})
}

// A watch that has failed is tried again after ever longer pauses. The switch does not wait for that.
func TestTheSwitchIsHeardWhileItCannotBeWatched(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	folder := t.TempDir()
	said, hasten := filepath.Join(folder, "said"), filepath.Join(folder, "hasten")
	if err := os.WriteFile(hasten, []byte("#!/bin/sh\necho \"$@\" >>"+said+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	toggle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: webhook.Switch, Namespace: "hasten-system"}, Data: map[string]string{"accelerate": "on"}}
	api := fake.NewClientset(toggle)
	refuse := func(clienttesting.Action) (bool, kubernetesruntime.Object, error) {
		return true, nil, errors.New("connection refused")
	}
	api.PrependReactor("list", "configmaps", refuse)
	api.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, errors.New("connection refused")
	})
	agent := &Agent{API: api, Node: "one", Namespace: "hasten-system", Hasten: hasten, Every: 20 * time.Millisecond, Events: record.NewFakeRecorder(10)}
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	heard := func(word string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(said)
			return strings.HasSuffix(string(text), "engine "+word+" all\n")
		}
	}
	for _, word := range []string{"off", "on"} {
		changed := toggle.DeepCopy()
		changed.Data["accelerate"] = word
		if _, err := api.CoreV1().ConfigMaps("hasten-system").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, word, heard(map[string]string{"off": "disable", "on": "enable"}[word]))
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAPodOnANodeWithoutLibrariesIsTold(t *testing.T) {
	folder := t.TempDir()
	events := record.NewFakeRecorder(10)
	agent := &Agent{Events: events, Folder: filepath.Join(folder, "node"), Image: filepath.Join(folder, "image")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.Now(), Labels: map[string]string{inject.StateKey: "accelerated"}}}
	agent.install(context.Background())
	agent.explain(pod, time.Now())
	if event := <-events.Events; !strings.HasPrefix(event, "Warning HastenNodeNotReady ") {
		t.Error(event)
	}
	if err := os.Mkdir(agent.Image, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(agent.Image, inject.ShimName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	agent.install(context.Background())
	agent.explain(pod, time.Now())
	if event := <-events.Events; !strings.HasPrefix(event, "Normal HastenAccelerated") {
		t.Error(event)
	}
	if _, err := os.Stat(filepath.Join(agent.Folder, inject.Current, inject.ShimName)); err != nil {
		t.Error(err)
	}
}

// Whoever is asked after us can have his way; the label of the pod says otherwise, so an event does.
func TestAPodIsToldThatAnotherWebhookHasOverwrittenItsPreload(t *testing.T) {
	events := record.NewFakeRecorder(10)
	agent := &Agent{Events: events}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.Now()}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}, {Name: "mesh"}}}}
	decision := inject.Decide(pod, inject.Surroundings{})
	inject.Apply(pod, decision, inject.Settings{Image: "hasten:1", From: inject.Node})
	agent.explain(pod, time.Now())
	if event := <-events.Events; !strings.HasPrefix(event, "Normal HastenAccelerated web: accelerated") {
		t.Error(event)
	}
	pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/theirs.so"})
	agent.explain(pod, time.Now())
	if event := <-events.Events; !strings.HasPrefix(event, "Warning HastenPreloadOverwritten mesh: runs without acceleration") {
		t.Error(event)
	}
}

func TestTheAgentCountsItsPodsAndRunsTheExporter(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	exporter := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer exporter.Close()
	folder := t.TempDir()
	hasten, said := filepath.Join(folder, "hasten"), filepath.Join(folder, "said")
	if err := os.WriteFile(hasten, []byte("#!/bin/sh\necho \"$@\" >"+said+"\nexec sleep 100\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	pod := func(name, state string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{inject.StateKey: state}}, Status: corev1.PodStatus{Phase: phase}}
	}
	api := fake.NewClientset(pod("a", "accelerated", corev1.PodRunning), pod("b", "accelerated", corev1.PodPending), pod("c", "left-alone", corev1.PodRunning), pod("d", "accelerated", corev1.PodSucceeded))
	agent := &Agent{API: api, Node: "one", Namespace: "hasten-system", Hasten: hasten, Every: time.Hour, Events: record.NewFakeRecorder(10),
		Exporter: strings.TrimPrefix(exporter.URL, "http://")}
	factory := informers.NewSharedInformerFactory(api, 0)
	lister := factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	agent.Metrics, agent.Reviews = free(t), api
	api.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, kubernetesruntime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated, review.Status.User.Username = review.Spec.Token == "prometheus", "monitor"
		return true, review, nil
	})
	api.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, kubernetesruntime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = true
		return true, review, nil
	})
	end, err := agent.serve(ctx, lister)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(path, token string) *http.Response {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, "https://"+agent.Metrics+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, path := range []string{"/metrics", "/facts", "/cpu?namespace=shop", "/anything"} {
		refused := ask(path, "stranger")
		if _ = refused.Body.Close(); refused.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s to a stranger", path, refused.Status)
		}
	}
	answer := ask("/metrics", "prometheus")
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(text), `hasten_pods{namespace="shop",state="accelerated"} 2`) || !strings.Contains(string(text), `hasten_pods{namespace="shop",state="left-alone"} 1`) {
		t.Errorf("%v\n%s", err, text)
	}
	eventually(t, "the exporter runs", func() bool {
		words, _ := os.ReadFile(said)
		return string(words) == "export --by-container --listen "+agent.Exporter+"\n"
	})
	// Nothing stays behind: the exporter ends with the agent.
	end()
}

func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestFactsAreTheCommandsAndNotAskedTooOften(t *testing.T) {
	folder := t.TempDir()
	hasten := filepath.Join(folder, "hasten")
	script := "#!/bin/sh\n[ \"$*\" = 'check --json' ] || exit 9\necho >>" + folder + "/asked\necho '{}'\n"
	if err := os.WriteFile(hasten, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	here := &facts{hasten: hasten}
	for range 3 {
		answer := httptest.NewRecorder()
		here.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/facts", nil))
		if answer.Code != http.StatusOK || answer.Body.String() != "{}\n" {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	}
	if asked, err := os.ReadFile(filepath.Join(folder, "asked")); err != nil || len(asked) != 1 {
		t.Errorf("asked %d times: %v", len(asked), err)
	}
	answer := httptest.NewRecorder()
	(&facts{hasten: filepath.Join(folder, "nothing")}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/facts", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Error(answer.Code)
	}
}

// runtime is a simulation of a container runtime that has one image. The real one is asked in e2e.
type runtime struct {
	cri.UnimplementedImageServiceServer
	info string
}

func (r runtime) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	if !request.Verbose || request.Image.Image != "sha256:aa" {
		return nil, errors.New("no such image")
	}
	return &cri.ImageStatusResponse{Info: map[string]string{"info": r.info}}, nil
}

func TestAPodIsToldOnceThatItsImagesPreloadIsOutOfForce(t *testing.T) {
	folder, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	listener, err := net.Listen("unix", filepath.Join(folder, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	cri.RegisterImageServiceServer(server, runtime{info: `{"imageSpec": {"config": {"Env": ["PATH=/bin", "LD_PRELOAD=/usr/lib/libjemalloc.so.2"]}}}`})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	events := record.NewFakeRecorder(10)
	a := &Agent{Events: events}
	if a.images, err = newImages(filepath.Join(folder, "s")); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Labels: map[string]string{inject.StateKey: "accelerated"}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "web", Env: []corev1.EnvVar{{Name: "LD_PRELOAD", Value: inject.Shim}}},
			{Name: "own", Env: []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/x.so:" + inject.Shim}}},
			{Name: "stock"},
			{Name: "broken", Env: []corev1.EnvVar{{Name: "LD_PRELOAD", Value: inject.Shim}}},
		},
	}}
	for _, container := range pod.Spec.Containers {
		id := "sha256:aa"
		if container.Name == "broken" {
			id = "sha256:bb"
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, ImageID: id,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	for range 3 {
		a.replaced(context.Background(), pod)
	}
	if len(events.Events) != 1 {
		t.Fatalf("%d events", len(events.Events))
	}
	if event := <-events.Events; !strings.HasPrefix(event, "Warning HastenPreloadReplaced web: the image sets LD_PRELOAD=/usr/lib/libjemalloc.so.2") {
		t.Error(event)
	}
	a.forget(pod)
	a.looked.Range(func(key, _ any) bool { t.Errorf("%v is kept for ever", key); return true })
}
