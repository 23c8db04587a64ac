package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestACertificateIsMadeSharedAndRenewed(t *testing.T) {
	ctx := context.Background()
	api := fake.NewClientset(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hasten", ResourceVersion: "1"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a"}}})
	one := &Keeper{API: api, Namespace: "hasten-system", Service: "hasten-webhook", Configuration: "hasten"}
	two := &Keeper{API: api, Namespace: "hasten-system", Service: "hasten-webhook", Configuration: "hasten"}
	if one.Ready() == nil {
		t.Error("ready without a certificate")
	}
	look := func(keepers ...*Keeper) {
		t.Helper()
		for _, keeper := range keepers {
			if err := keeper.look(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	look(one, two)
	if !bytes.Equal(one.loaded, two.loaded) {
		t.Error("two replicas show two certificates")
	}
	verify(t, api, two)

	// One finds the certificate old, and renews it; two still shows the old one, and is trusted.
	secrets := api.CoreV1().Secrets("hasten-system")
	old, _ := secrets.Get(ctx, secretName, metav1.GetOptions{})
	aged, _ := Make("hasten-webhook.hasten-system.svc", time.Now().Add(-lifetime+renewAt-time.Minute))
	old.Data = aged
	if _, err := secrets.Update(ctx, old, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pair, _ := tls.X509KeyPair(aged["tls.crt"], aged["tls.key"])
	two.current.Store(&pair)
	look(one)
	if bytes.Equal(one.loaded, aged["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	verify(t, api, one)
	verify(t, api, two)
}

// verify does what the API server does with what a replica shows.
func verify(t *testing.T, api *fake.Clientset, keeper *Keeper) {
	t.Helper()
	hook, err := api.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(context.Background(), "hasten", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hook.Webhooks[0].ClientConfig.CABundle)
	shown, err := keeper.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(shown.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "hasten-webhook.hasten-system.svc"}); err != nil {
		t.Error(err)
	}
}
