// Package chart renders the chart as `helm template` does, with Helm's own engine.
package chart

import (
	"fmt"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Load reads the chart in a folder.
func Load(folder string) (*chart.Chart, error) { return loader.LoadDir(folder) }

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
