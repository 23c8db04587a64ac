// Package certs makes the webhook's certificate, keeps it in a Secret that all replicas share, renews it, and tells the API
// server whom to trust.
package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	secretName = "hasten-webhook-certificate"
	authority  = "ca.crt"
	lifetime   = 365 * 24 * time.Hour
	renewAt    = lifetime / 3
	eager      = time.Second
	calm       = 10 * time.Second
)

// Keeper looks after the certificate.
type Keeper struct {
	API                               kubernetes.Interface
	Namespace, Service, Configuration string

	current atomic.Pointer[tls.Certificate]
	loaded  []byte
}

// Certificate is for tls.Config.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := k.current.Load(); current != nil {
		return current, nil
	}
	return nil, k.Ready()
}

// Ready says whether there is a certificate.
func (k *Keeper) Ready() error {
	if k.current.Load() == nil {
		return errors.New("the certificate is not there yet: see whether Secrets can be written in this namespace")
	}
	return nil
}

// Run looks every second until there is a certificate, so that an installation is ready at once, and calmly afterwards.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		pause := calm
		if err := k.look(ctx); err != nil {
			log.FromContext(ctx).Error(err, "the certificate cannot be looked after")
			pause = eager
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (k *Keeper) look(ctx context.Context) error {
	secret, err := k.secret(ctx)
	if err != nil {
		return err
	}
	// The API server first: it must trust a certificate before any replica shows it.
	if err := k.trust(ctx, secret.Data[authority]); err != nil {
		return err
	}
	if bytes.Equal(k.loaded, secret.Data[corev1.TLSCertKey]) {
		return nil
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("the Secret %s is damaged, and is made again once it is deleted: %w", secretName, err)
	}
	k.current.Store(&pair)
	k.loaded = secret.Data[corev1.TLSCertKey]
	return nil
}

// secret reads what there is, or makes it. Of several replicas that do so at once, one is first, and the others read.
func (k *Keeper) secret(ctx context.Context) (*corev1.Secret, error) {
	secrets := k.API.CoreV1().Secrets(k.Namespace)
	found, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
	if err == nil && !ageing(found.Data[corev1.TLSCertKey], time.Now()) {
		return found, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	missing := err != nil
	data, err := Make(k.Service+"."+k.Namespace+".svc", time.Now())
	if err != nil {
		return nil, err
	}
	if missing {
		return secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Type: corev1.SecretTypeTLS, Data: data}, metav1.CreateOptions{})
	}
	// Replicas that still show the old one stay trusted.
	data[authority] = append(data[authority], newest(found.Data[authority])...)
	found.Data = data
	return secrets.Update(ctx, found, metav1.UpdateOptions{})
}

func ageing(text []byte, now time.Time) bool {
	parsed, err := cert.ParseCertsPEM(text)
	return err != nil || now.Add(renewAt).After(parsed[0].NotAfter)
}

// newest is the first certificate of a bundle.
func newest(bundle []byte) []byte {
	parsed, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	text, err := cert.EncodeCertificates(parsed[0])
	if err != nil {
		return nil
	}
	return text
}

func (k *Keeper) trust(ctx context.Context, bundle []byte) error {
	configurations := k.API.AdmissionregistrationV1().MutatingWebhookConfigurations()
	found, err := configurations.Get(ctx, k.Configuration, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the MutatingWebhookConfiguration cannot be read: %w", err)
	}
	var patch []map[string]any
	for i, hook := range found.Webhooks {
		if !bytes.Equal(hook.ClientConfig.CABundle, bundle) {
			patch = append(patch, map[string]any{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), "value": bundle})
		}
	}
	if len(patch) == 0 {
		return nil
	}
	// Somebody may have changed the order of webhooks meanwhile.
	patch = append([]map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": found.ResourceVersion}}, patch...)
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = configurations.Patch(ctx, k.Configuration, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: "hasten-webhook"})
	return err
}

// Make is an authority that signs one certificate, whose own key is then forgotten.
func Make(host string, now time.Time) (map[string][]byte, error) {
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "hasten webhook"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, root.Public(), root, now)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, key.Public(), root, now)
	if err != nil {
		return nil, err
	}
	return encode(ca, leaf, key)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, root *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour)
	template.NotAfter = now.Add(lifetime)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, root)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encode(ca, leaf *x509.Certificate, key *ecdsa.PrivateKey) (map[string][]byte, error) {
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	trusted, err := cert.EncodeCertificates(ca)
	if err != nil {
		return nil, err
	}
	shown, err := cert.EncodeCertificates(leaf)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{authority: trusted, corev1.TLSCertKey: shown, corev1.TLSPrivateKeyKey: private}, nil
}
