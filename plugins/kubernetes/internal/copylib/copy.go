// Package copylib copies the libraries from the image into a pod's volume.
package copylib

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Tree copies a folder. Each file appears whole or not at all, since a container that restarts may find it at any time.
// The shim comes last: it is what makes use of the others.
func Tree(from, to, last string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil || relative == last {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return file(path, target)
	})
	if err != nil {
		return fmt.Errorf("cannot copy %s to %s: %w", from, to, err)
	}
	return file(filepath.Join(from, last), filepath.Join(to, last))
}

func file(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	fresh, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name())
	_, err = io.Copy(fresh, source)
	if err == nil {
		err = fresh.Chmod(0o555)
	}
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(fresh.Name(), to)
}
