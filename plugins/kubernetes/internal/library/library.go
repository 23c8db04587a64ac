// Package library brings the libraries from the image to where containers load them: into a pod's volume, or onto the node.
package library

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"hasten.dev/kubernetes/internal/inject"
)

// Copy copies a folder. Each file appears whole or not at all, since a container that restarts may find it at any time.
// The shim comes last: it is what makes use of the others.
func Copy(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil || relative == inject.ShimName {
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
	return file(filepath.Join(from, inject.ShimName), filepath.Join(to, inject.ShimName))
}

// kept is how many versions stay on a node: a process may still load what it has not loaded yet from the one that it began
// with.
const kept = 3

// Install puts the libraries into a folder of the node, each version into a folder named by what is in it, and lets the
// link "current" point to this one. Whoever starts a program meanwhile finds the old version or the new one, whole.
func Install(from, node string) (version string, err error) {
	if err := os.MkdirAll(node, 0o755); err != nil {
		return "", fmt.Errorf("%s cannot be made: %w", node, err)
	}
	if err := loadable(node); err != nil {
		return "", err
	}
	if version, err = fingerprint(from); err != nil {
		return "", fmt.Errorf("the image has no libraries at %s: %w", from, err)
	}
	home := filepath.Join(node, version)
	// After a crash of the node, files may be there without their contents.
	if found, err := fingerprint(home); err != nil || found != version {
		if err := replace(from, home); err != nil {
			return "", err
		}
	}
	if err := point(filepath.Join(node, inject.Current), version); err != nil {
		return "", err
	}
	return version, prune(node, version)
}

// loadable refuses a folder from which no loader may map a library.
func loadable(folder string) error {
	var about syscall.Statfs_t
	if err := syscall.Statfs(folder, &about); err != nil {
		return fmt.Errorf("%s cannot be looked at: %w", folder, err)
	}
	const noExec = 8
	if about.Flags&noExec != 0 {
		return fmt.Errorf("%s is mounted noexec, so nothing can be loaded from it; set libraries.hostPath of the chart to a folder elsewhere", folder)
	}
	return nil
}

// fingerprint names contents: every path, and the hash of what is there.
func fingerprint(folder string) (string, error) {
	all := sha256.New()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		source, err := os.Open(path)
		if err != nil {
			return err
		}
		defer source.Close()
		one := sha256.New()
		if _, err := io.Copy(one, source); err != nil {
			return err
		}
		_, err = fmt.Fprintf(all, "%q %x\n", relative, one.Sum(nil))
		return err
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(all.Sum(nil)[:8]), nil
}

func replace(from, home string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(home), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := Copy(from, fresh); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	return os.Rename(fresh, home)
}

// point exchanges a link at once.
func point(link, target string) error {
	if found, err := os.Readlink(link); err == nil && found == target {
		return nil
	}
	fresh := filepath.Join(filepath.Dir(link), ".link-"+target)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}

// prune removes the oldest versions, and what an agent that was killed has left.
func prune(node, current string) error {
	entries, err := os.ReadDir(node)
	if err != nil {
		return err
	}
	var versions []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case err != nil || entry.Name() == inject.Current || entry.Name() == current:
		case entry.Name()[0] == '.':
			err = os.RemoveAll(filepath.Join(node, entry.Name()))
		case entry.IsDir():
			versions = append(versions, info)
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(versions, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range versions[min(len(versions), kept-1):] {
		if err := os.RemoveAll(filepath.Join(node, old.Name())); err != nil {
			return err
		}
	}
	return nil
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
