package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func put(t *testing.T, folder string, now time.Time) {
	t.Helper()
	files, err := Make("hasten-webhook.hasten-system.svc", now)
	if err != nil {
		t.Fatal(err)
	}
	// The key first: whoever reads both in between finds that they do not belong together, and tries again.
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateOfSomebodyElsesIsReadAgainOnceItIsRenewed(t *testing.T) {
	folder := t.TempDir()
	if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), "has not made it yet") {
		t.Error(err)
	}
	put(t, folder, time.Now())
	files, err := Read(folder)
	if err != nil || files.Ready() != nil {
		t.Fatal(err, files.Ready())
	}
	ctx, stop := context.WithCancel(context.Background())
	files.watcher.WithWatchInterval(20 * time.Millisecond)
	done := make(chan error)
	go func() { done <- files.Run(ctx) }()
	shown := func() []byte {
		pair, err := files.Certificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	before := shown()
	put(t, folder, time.Now())
	for end := time.Now().Add(time.Minute); bytes.Equal(shown(), before); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the old one is shown for ever")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestACertificateThatNobodyRenewsIsToldOf(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, time.Now().Add(-2*lifetime))
	files, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Ready(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Error(err)
	}
}
