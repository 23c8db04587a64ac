package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Files are a certificate that somebody else keeps, such as cert-manager, who also tells the API server whom to trust.
type Files struct {
	watcher *certwatcher.CertWatcher
}

// Read reads a certificate and its key from a folder.
func Read(folder string) (*Files, error) {
	certificate, key := filepath.Join(folder, corev1.TLSCertKey), filepath.Join(folder, corev1.TLSPrivateKeyKey)
	// The kubelet mounts a Secret once it is there, so this is somebody's mistake, or a Secret that is still empty.
	for _, file := range []string{certificate, key} {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s is not there: whoever keeps the certificate has not made it yet", file)
		}
	}
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s cannot be used: %w", folder, err)
	}
	return &Files{watcher.WithWatchInterval(calm)}, nil
}

// Run reads again what has been renewed.
func (f *Files) Run(ctx context.Context) error { return f.watcher.Start(ctx) }

// Certificate is the newest.
func (f *Files) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.watcher.GetCertificate(hello)
}

// Ready says whether it can be shown.
func (f *Files) Ready() error {
	pair, err := f.watcher.GetCertificate(nil)
	switch {
	case err != nil:
		return err
	case pair == nil || pair.Leaf == nil:
		return errors.New("there is no certificate")
	case time.Now().After(pair.Leaf.NotAfter):
		return fmt.Errorf("the certificate has expired on %s, and whoever keeps it has not renewed it", pair.Leaf.NotAfter.Format(time.DateTime))
	}
	return nil
}
