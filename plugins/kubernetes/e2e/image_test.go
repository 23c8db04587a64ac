//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// image is what a container sees: files of this machine, and texts.
type image struct {
	name    string
	command []string
	files   []string
	texts   map[string]string
	env     []string
	// root of the files, if they are not of this machine.
	root string
}

// fromDebian adds a program of this machine, with the libraries that it is linked with.
func (i *image) fromDebian(t *testing.T, program string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("no %s: scripts/packages.sh test installs it", program)
	}
	output, err := exec.Command("ldd", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	i.files = append(i.files, path)
	// Whoever has Debian's C library has these, too, though nothing of today is linked with them.
	i.files = append(i.files, "/lib/x86_64-linux-gnu/libpthread.so.0", "/lib/x86_64-linux-gnu/libdl.so.2")
	i.files = append(i.files, regexp.MustCompile(`/[^ ]+`).FindAllString(string(output), -1)...)
}

// archive is the image as an OCI archive.
func (i *image) archive(t *testing.T) string {
	t.Helper()
	layer, blobs := i.layer(t), map[string][]byte{}
	blob := func(content []byte) map[string]any {
		sum := sha256.Sum256(content)
		name := hex.EncodeToString(sum[:])
		blobs["blobs/sha256/"+name] = content
		return map[string]any{"digest": "sha256:" + name, "size": len(content)}
	}
	text := func(value any) []byte {
		content, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	content := blob(layer)
	config := blob(text(map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": i.command, "Env": i.env},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{content["digest"]}}}))
	config["mediaType"], content["mediaType"] = "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar"
	manifest := blob(text(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{content}}))
	manifest["mediaType"], manifest["annotations"] = "application/vnd.oci.image.manifest.v1+json", map[string]string{"io.containerd.image.name": i.name}
	blobs["index.json"] = text(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	blobs["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for name, content := range blobs {
		add(t, archive, name, 0o644, content)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (i *image) layer(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	layer := tar.NewWriter(&out)
	for _, folder := range []string{"tmp/", "proc/", "sys/", "dev/"} {
		if err := layer.WriteHeader(&tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range i.files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		add(t, layer, strings.TrimPrefix(strings.TrimPrefix(path, i.root), "/"), 0o755, content)
	}
	for path, text := range i.texts {
		add(t, layer, strings.TrimPrefix(path, "/"), 0o644, []byte(text))
	}
	if err := layer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func add(t *testing.T, archive *tar.Writer, name string, mode int64, content []byte) {
	t.Helper()
	if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
}
