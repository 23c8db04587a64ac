// Package chart renders the chart as `helm template` does, with Helm's own engine.
package chart

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Load reads the chart in a folder. Helm's own reader would log every symbolic link, of which the chart has four.
func Load(folder string) (*chart.Chart, error) {
	var files []*loader.BufferedFile
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, &loader.BufferedFile{Name: filepath.ToSlash(name), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return loader.LoadFiles(files)
}

// Render gives the manifests of a release, each behind a line that says where it comes from. The values are checked against
// the chart's schema.
func Render(from *chart.Chart, namespace string, values map[string]any) (string, error) {
	release := chartutil.ReleaseOptions{Name: "hasten", Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(from, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(from, all)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		if one := strings.TrimSpace(files[name]); one != "" && strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", name, one)
		}
	}
	return text.String(), nil
}
