package chart

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigs "sigs.k8s.io/yaml"
)

const folder = "../../../../packaging/kubernetes/chart"

// variants are every switch of the values, on and off.
var variants = func() map[string]string {
	text, err := os.ReadFile("testdata/variants.yaml")
	if err != nil {
		panic(err)
	}
	var values map[string]any
	if err := sigs.Unmarshal(text, &values); err != nil {
		panic(err)
	}
	all := map[string]string{}
	for name, value := range values {
		one, err := sigs.Marshal(value)
		if err != nil {
			panic(err)
		}
		all[name] = string(one)
	}
	return all
}()

// custom are kinds of other projects: what they mean is checked where they are used.
var custom = []string{"monitoring.coreos.com", "cert-manager.io"}

func render(t *testing.T, values string) (string, error) {
	t.Helper()
	from, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := sigs.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return Render(from, "hasten-system", parsed)
}

// objects reads manifests as strictly as an API server that refuses what it does not know.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var all []runtime.Object
	for {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		var kind schema.GroupVersionKind
		var about metav1.TypeMeta
		if err := sigs.Unmarshal(one, &about); err != nil {
			t.Fatalf("%v:\n%s", err, one)
		}
		if kind = about.GroupVersionKind(); kind.Kind == "" || slices.Contains(custom, kind.Group) {
			continue
		}
		object, _, err := strict.Decode(one, nil, nil)
		if err != nil {
			t.Errorf("%v:\n%s", err, one)
			continue
		}
		all = append(all, object)
	}
}

func TestEveryManifestIsOfTheAPI(t *testing.T) {
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			text, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			if len(objects(t, text)) < 10 {
				t.Errorf("only this:\n%s", text)
			}
		})
	}
}

// Whatever happens to the webhook, pods start; a drain of nodes leaves one replica; and each of ours that listens has a policy.
func TestTheWebhookStandsInNobodysWay(t *testing.T) {
	text, err := render(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	hooks, budgets, policies := 0, 0, map[string]bool{}
	for _, object := range objects(t, text) {
		switch one := object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, hook := range one.Webhooks {
				hooks++
				if *hook.FailurePolicy != admissionregistrationv1.Ignore || *hook.TimeoutSeconds != 2 || *hook.SideEffects != admissionregistrationv1.SideEffectClassNone ||
					*hook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
					t.Errorf("%+v", hook)
				}
				if !slices.ContainsFunc(hook.NamespaceSelector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
					return e.Key == "kubernetes.io/metadata.name" && e.Operator == metav1.LabelSelectorOpNotIn && slices.Contains(e.Values, "kube-system") && slices.Contains(e.Values, "hasten-system")
				}) {
					t.Errorf("%s is asked about all namespaces", hook.Name)
				}
			}
		case *policyv1.PodDisruptionBudget:
			budgets++
			if one.Spec.MaxUnavailable.IntValue() != 1 || one.Spec.Selector.MatchLabels["app.kubernetes.io/component"] != "webhook" {
				t.Errorf("%+v", one.Spec)
			}
		case *networkingv1.NetworkPolicy:
			policies[one.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"]] = true
		}
	}
	if hooks != 2 || budgets != 1 || !policies["webhook"] || !policies["agent"] {
		t.Errorf("%d webhooks, %d budgets, policies of %v", hooks, budgets, policies)
	}
	without, err := render(t, "{networkPolicy: {enabled: false}}")
	if err != nil || strings.Contains(without, "kind: NetworkPolicy") {
		t.Error("there are policies that nobody wants:", err)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		`{imgae: {}}`:                                       "imgae",
		`{image: {repository: ""}}`:                         "repository",
		`{image: {digest: "sha256:abc"}}`:                   "digest",
		`{image: {pullPolicy: Sometimes}}`:                  "pullPolicy",
		`{libraries: {from: registry}}`:                     "from",
		`{libraries: {hostPath: var/lib}}`:                  "hostPath",
		`{libraries: {hostPath: /a/$(touch b)}}`:            "hostPath",
		`{webhook: {replicas: 0}}`:                          "replicas",
		`{webhook: {canaryInterval: soon}}`:                 "canaryInterval",
		`{devices: {enabled: true}, dra: {enabled: true}}`:  "twice",
		`{webhook: {certManager: {issuer: {kind: Vault}}}}`: "kind",
		`{dra: {evict: 1}}`:                                 "evict",
		`{devices: {share: 0}}`:                             "share",
		`{devices: {domain: "a/b"}}`:                        "domain",
		`{agent: {enabled: "yes"}}`:                         "enabled",
		`{agent: {enabled: false}}`:                         "needs the agent",
		`{monitoring: {serviceMonitor: {on: 1}}}`:           "on",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// What a reviewer looks for first.
func TestRightsAreNarrow(t *testing.T) {
	for name, values := range variants {
		text, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects(t, text) {
			var rules []rbacv1.PolicyRule
			switch role := object.(type) {
			case *rbacv1.ClusterRole:
				rules = role.Rules
			case *rbacv1.Role:
				rules = role.Rules
			}
			for _, rule := range rules {
				if why := tooWide(rule, object); why != "" {
					t.Errorf("%s: %s: %+v", name, why, rule)
				}
			}
		}
	}
}

func tooWide(rule rbacv1.PolicyRule, object runtime.Object) string {
	all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
	_, cluster := object.(*rbacv1.ClusterRole)
	switch {
	case slices.Contains(all, "*"):
		return "a wildcard"
	case cluster && slices.Contains(rule.Resources, "secrets"):
		return "Secrets of all namespaces"
	case slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0:
		return "all Secrets of a namespace"
	case slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains([]string{"escalate", "bind", "impersonate"}, verb) }):
		return "rights to get rights"
	}
	return ""
}

// An agent is root on its node, so no more of it than it needs; the webhook is nobody.
func TestContainersAreConfined(t *testing.T) {
	text, err := render(t, variants["devices"])
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, object := range objects(t, text) {
		var template *corev1.PodTemplateSpec
		switch workload := object.(type) {
		case *appsv1.Deployment:
			template = &workload.Spec.Template
			if *template.Spec.SecurityContext.RunAsNonRoot != true {
				t.Error("the webhook is root")
			}
		case *appsv1.DaemonSet:
			template = &workload.Spec.Template
		default:
			continue
		}
		for _, container := range template.Spec.Containers {
			seen++
			about := container.SecurityContext
			if slices.Contains(about.Capabilities.Add, "PERFMON") {
				t.Errorf("%s may profile everybody, and nobody has asked for that", container.Name)
			}
			if !*about.ReadOnlyRootFilesystem || *about.AllowPrivilegeEscalation || about.Capabilities.Drop[0] != "ALL" || about.Privileged != nil {
				t.Errorf("%s: %+v", container.Name, about)
			}
			if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: %+v", container.Name, container.Resources)
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d containers", seen)
	}
}

func TestTheImageIsWhatTheValuesSay(t *testing.T) {
	for values, image := range map[string]string{
		``:                                      "registry.invalid/hasten:0.1.0",
		`{image: {repository: a.b/c, tag: v2}}`: "a.b/c:v2",
		variants["by digest"]:                   fmt.Sprintf("registry.invalid/hasten@sha256:%s", strings.Repeat("0a", 32)),
	} {
		text, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		// Of the agent, of the webhook, and what the webhook gives to pods.
		if got := strings.Count(text, `"`+image+`"`); got < 3 {
			t.Errorf("%s: %d times", image, got)
		}
	}
}

// Whoever lets cert-manager do it gives the webhook no right to certificates, nor to say whom to trust.
func TestCertManagerKeepsTheCertificateIfAskedTo(t *testing.T) {
	for name, own := range map[string]bool{"as it comes": true, "cert-manager": false, "its issuer": false} {
		text, err := render(t, variants[name])
		if err != nil {
			t.Fatal(err)
		}
		for part, want := range map[string]bool{
			"hasten-webhook-certificate": own, "mutatingwebhookconfigurations": own, "--certificates=": !own, "kind: Certificate\n": !own,
			"secretName: hasten-webhook-cert-manager\n": !own, "{secretName: hasten-webhook-cert-manager}": !own,
			"cert-manager.io/inject-ca-from: hasten-system/hasten-webhook": !own, "dnsNames: [hasten-webhook.hasten-system.svc]": !own,
			"kind: Issuer\nmetadata": name == "cert-manager", "kind: ClusterIssuer\n    name: ours": name == "its issuer",
		} {
			if strings.Contains(text, part) != want {
				t.Errorf("%s: %q: %t", name, part, !want)
			}
		}
	}
}

// What is served says how busy whose programs are: nobody reads it whom the API server does not know.
func TestReadersHaveToBeKnown(t *testing.T) {
	text, err := render(t, variants["monitored"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(text, "scheme: https\n") != 2 || strings.Count(text, "bearerTokenFile: ") != 2 {
		t.Error("Prometheus does not say who it is")
	}
	for _, object := range objects(t, text) {
		switch one := object.(type) {
		case *rbacv1.ClusterRole:
			reviews := slices.ContainsFunc(one.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "tokenreviews") })
			if want := one.Name == "hasten-agent" || one.Name == "hasten-webhook"; reviews != want {
				t.Errorf("%s may ask who somebody is: %t", one.Name, reviews)
			}
		case *rbacv1.ClusterRoleBinding:
			if one.Name == "hasten-reader" && (len(one.Subjects) != 2 || one.Subjects[1].Name != "prometheus" || one.Subjects[1].Namespace != "monitoring") {
				t.Errorf("%+v", one.Subjects)
			}
		}
	}
}

const packaging = "../../../../packaging/"

// What the chart brings for Prometheus Operator and Grafana is what packaging has for everybody else.
func TestAlertsAndDashboardsAreWhole(t *testing.T) {
	text, err := render(t, variants["monitored"])
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	var dashboards corev1.ConfigMap
	monitors := 0
	for _, one := range strings.Split(text, "\n---\n") {
		var err error
		switch {
		case strings.Contains(one, "kind: PrometheusRule"):
			err = sigs.Unmarshal([]byte(one), &rules)
		case strings.Contains(one, "name: hasten-dashboards"):
			err = sigs.Unmarshal([]byte(one), &dashboards)
		case strings.Contains(one, "kind: ServiceMonitor"):
			monitors++
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	groups := rules.Spec.Groups
	if len(groups) != 2 || len(groups[0].Rules) < 8 || len(groups[1].Rules) != 5 || monitors != 2 {
		t.Errorf("%d monitors, %+v", monitors, groups)
	}
	for name, file := range map[string]string{"hasten-hasten.json": "hasten.json", "hasten-cluster.json": "hasten-cluster.json"} {
		want, err := os.ReadFile(packaging + "grafana/" + file)
		if err != nil || dashboards.Data[name] != string(want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAlertsComeWhenTheyShould(t *testing.T) {
	for _, arguments := range [][]string{{"check", "rules", "hasten.cluster.rules.yml"}, {"test", "rules", "hasten.cluster.rules.test.yml"}} {
		command := exec.Command("promtool", arguments...)
		command.Dir = packaging + "prometheus"
		output, err := command.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("no promtool: run `sudo apt-get install prometheus`")
		}
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

// A metric that nobody has is a panel that stays empty, and an alert that never comes.
func TestOnlyMetricsThatExistAreAskedFor(t *testing.T) {
	known := map[string]bool{}
	for _, file := range []string{"../../../../docs/metrics.md", "../../../../docs/kubernetes.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range regexp.MustCompile("(?m)^\\| `(hasten_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
			known[row[1]] = true
		}
	}
	for _, file := range []string{"grafana/hasten-cluster.json", "prometheus/hasten.cluster.rules.yml"} {
		text, err := os.ReadFile(packaging + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`hasten_[a-z_]+`).FindAllString(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s: %v", file, names)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s asks for %s, which is in no table of the docs", file, name)
			}
		}
	}
}

// What a newcomer pastes: values that the chart has, keys that somebody reads, and names of what the chart makes.
func TestWhatTheDocsSayToTypeExists(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(text)
	from, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(docs, -1) {
		for _, line := range strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
			values := map[string]any{}
			for _, set := range regexp.MustCompile(`--set(?:-string)? (\S+)`).FindAllStringSubmatch(line, -1) {
				commands++
				if err := strvals.ParseInto(set[1], values); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			if _, err := Render(from, "hasten-system", values); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if commands < 5 {
		t.Errorf("only %d values were found", commands)
	}
	// In the text: `agent.debugfs=true`.
	for _, set := range regexp.MustCompile("`(?:--set )?([a-z]+\\.[a-zA-Z.]+=[a-z]+)`").FindAllStringSubmatch(docs, -1) {
		values := map[string]any{}
		if strvals.ParseInto(set[1], values) != nil {
			t.Error(set[1])
		}
		// Two need another beside them.
		if _, err := Render(from, "hasten-system", values); err != nil && !strings.Contains(err.Error(), "needs the agent") && !strings.HasPrefix(set[1], "hasten.dev/") {
			t.Errorf("%s: %v", set[1], err)
		}
	}
	keys, err := os.ReadFile("../inject/keys.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`[^.](hasten\.dev/[a-z-]*[a-z])`).FindAllStringSubmatch(docs, -1) {
		// A resource name, with devices.domain=hasten.dev.
		if key := found[1]; !strings.Contains(string(keys), `"`+key+`"`) && key != "hasten.dev/qat-cy" {
			t.Errorf("nobody reads %s", key)
		}
	}
	made, err := render(t, variants["DRA"])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hasten-switch", "hasten-reader", "hasten-explain", "hasten-qat", "hasten-iaa", "hasten-dsa", "hasten-dlb"} {
		if !strings.Contains(docs, name) || !strings.Contains(made, "name: "+name+"\n") {
			t.Errorf("%s is not in both", name)
		}
	}
}

// A figure in the docs is one that was measured.
func TestTheDocsQuoteTheMeasurement(t *testing.T) {
	docs, err := os.ReadFile("../../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scale", "e2e"} {
		text, err := os.ReadFile("../../../../docs/results/kubernetes-" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Rows []struct{ What, Value string } `json:"rows"`
		}
		if err := sigs.Unmarshal(text, &report); err != nil || len(report.Rows) < 5 {
			t.Fatal(name, err, report)
		}
		for _, row := range report.Rows {
			if line := fmt.Sprintf("| %s | %s |\n", row.What, row.Value); !strings.Contains(string(docs), line) {
				t.Errorf("docs/kubernetes.md lacks the row %s", line)
			}
		}
	}
}
