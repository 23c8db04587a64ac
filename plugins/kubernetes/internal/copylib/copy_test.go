package copylib

import (
	"os"
	"path/filepath"
	"testing"
)

func TestATreeIsCopiedAgainAndAgain(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"libhasten.so": "shim", "musl/libhasten_tls.so": "musl", "node/register.js": "js"} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A container that restarts finds what the first run has left.
	for range 2 {
		if err := Tree(from, to, "libhasten.so"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(to, "musl/libhasten_tls.so"))
	if err != nil || string(got) != "musl" {
		t.Fatalf("%q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(to, "libhasten.so"))
	if err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("every user must be able to read it: %v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, ".copy-*")); len(left) > 0 {
		t.Error(left)
	}
}

func TestNoShimWithoutItsLibraries(t *testing.T) {
	to := t.TempDir()
	if err := Tree(filepath.Join(to, "nothing"), to, "libhasten.so"); err == nil {
		t.Error("nothing was copied, and nobody said so")
	}
}
