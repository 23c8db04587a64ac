package rollout

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	agents = "app.kubernetes.io/name=hasten,app.kubernetes.io/component=agent"
	// slow is how long an agent may take: it asks each of its pods.
	slow = 30 * time.Second
	// largest answer of an agent.
	largest = 4 << 20
)

// Agents asks the agent of a node, in hasten's own namespace. The token is one that is good for agents only, since nobody vouches for
// whoever answers: see auth.SelfSigned. Nodes are looked up one by one, which the API server has an index for: no list of all agents.
func Agents(api kubernetes.Interface, home string, port int, token string) Costs {
	client := &http.Client{Timeout: slow, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, IdleConnTimeout: slow},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, node, namespace, metric string) (map[types.UID]Cost, error) {
		secret, err := os.ReadFile(token)
		if err != nil {
			return nil, err
		}
		found, err := api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{LabelSelector: agents, ResourceVersion: "0",
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
		if err != nil {
			return nil, err
		}
		for _, agent := range found.Items {
			if agent.Status.Phase == corev1.PodRunning && agent.Status.PodIP != "" && agent.DeletionTimestamp == nil {
				return ask(ctx, client, net.JoinHostPort(agent.Status.PodIP, strconv.Itoa(port)), strings.TrimSpace(string(secret)), namespace, metric)
			}
		}
		return nil, fmt.Errorf("no agent runs there")
	}
}

func ask(ctx context.Context, client *http.Client, address, token, namespace, metric string) (map[types.UID]Cost, error) {
	query := url.Values{"namespace": {namespace}, "requests": {metric}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/cpu?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, largest))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	var costs map[types.UID]Cost
	return costs, json.Unmarshal(text, &costs)
}
