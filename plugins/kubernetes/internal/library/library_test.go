package library

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"hasten.dev/kubernetes/internal/inject"
)

// image is a folder as the image has it; the text distinguishes versions.
func image(t *testing.T, text string) string {
	t.Helper()
	from := t.TempDir()
	for _, name := range []string{inject.ShimName, "musl/libhasten_tls.so", "node/register.js"} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return from
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func install(t *testing.T, from, node string) string {
	t.Helper()
	version, err := Install(from, node)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestATreeIsCopiedAgainAndAgain(t *testing.T) {
	from, to := image(t, "one"), filepath.Join(t.TempDir(), "current")
	// A container that restarts finds what the first run has left.
	for range 2 {
		if err := Copy(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, to, "musl/libhasten_tls.so"); got != "one" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(filepath.Join(to, inject.ShimName))
	if err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("every user must be able to read it: %v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, ".copy-*")); len(left) > 0 {
		t.Error(left)
	}
}

func TestNoShimWithoutItsLibraries(t *testing.T) {
	to := t.TempDir()
	if err := Copy(filepath.Join(to, "nothing"), to); err == nil {
		t.Error("nothing was copied, and nobody said so")
	}
	if _, err := Install(filepath.Join(to, "nothing"), to); err == nil {
		t.Error("nothing was installed, and nobody said so")
	}
}

func TestAnUpgradeIsOneStepAndSoIsTheWayBack(t *testing.T) {
	node := filepath.Join(t.TempDir(), "made", "here")
	one, two := image(t, "one"), image(t, "two")
	first := install(t, one, node)
	if got := read(t, node, inject.Current, inject.ShimName); got != "one" {
		t.Errorf("%q", got)
	}
	// A process that began with the old version may still load something of it.
	second := install(t, two, node)
	if read(t, node, inject.Current, inject.ShimName) != "two" || read(t, node, first, "node/register.js") != "one" || first == second {
		t.Errorf("%s, %s", first, second)
	}
	install(t, one, node)
	if got := read(t, node, inject.Current, inject.ShimName); got != "one" {
		t.Errorf("%q", got)
	}
	for _, path := range []string{node, filepath.Join(node, first), filepath.Join(node, first, "musl")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("every user must be able to look into it: %v, %v", info, err)
		}
	}
}

func TestDamageIsRepaired(t *testing.T) {
	node, from := t.TempDir(), image(t, "one")
	version := install(t, from, node)
	damaged := filepath.Join(node, version, "musl/libhasten_tls.so")
	if err := os.Chmod(damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(damaged, 0); err != nil {
		t.Fatal(err)
	}
	install(t, from, node)
	if got := read(t, damaged); got != "one" {
		t.Errorf("%q", got)
	}
}

func TestOldVersionsAndLeftoversGo(t *testing.T) {
	node := t.TempDir()
	if err := os.Mkdir(filepath.Join(node, ".new-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		version := install(t, image(t, strconv.Itoa(i)), node)
		when := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(node, version), when, when); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(node)
	if err != nil || len(entries) != kept+1 {
		t.Errorf("%v, %v", entries, err)
	}
}
