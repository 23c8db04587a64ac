package auth

import (
	"crypto/tls"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hasten.dev/kubernetes/internal/certs"
)

// renew is how long a certificate is shown.
const renew = 30 * 24 * time.Hour

// SelfSigned gives certificates that nobody vouches for, made here and kept in memory. They keep those who listen out; who it is
// that answers, a scrape does not need to know, and tokens that must not fall into the wrong hands are for this Audience.
func SelfSigned(host string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var lock sync.Mutex
	var current *tls.Certificate
	var made time.Time
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		lock.Lock()
		defer lock.Unlock()
		if current != nil && time.Since(made) < renew {
			return current, nil
		}
		now := time.Now()
		files, err := certs.Make(host, now)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(files[corev1.TLSCertKey], files[corev1.TLSPrivateKeyKey])
		if err != nil {
			return nil, err
		}
		current, made = &pair, now
		return current, nil
	}
}
