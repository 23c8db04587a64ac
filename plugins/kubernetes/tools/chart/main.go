// chart renders the chart as `helm template` does, with Helm's own engine: chart DIR NAMESPACE [VALUES.yaml].
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return fmt.Errorf("chart DIR NAMESPACE [VALUES.yaml]")
	}
	chart, err := loader.LoadDir(arguments[0])
	if err != nil {
		return err
	}
	values := chartutil.Values{}
	if len(arguments) > 2 {
		if values, err = chartutil.ReadValuesFile(arguments[2]); err != nil {
			return err
		}
	}
	release := chartutil.ReleaseOptions{Name: "hasten", Namespace: arguments[1], IsInstall: true}
	// This checks the values against the chart's schema, too.
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if text := strings.TrimSpace(files[name]); text != "" && strings.HasSuffix(name, ".yaml") {
			fmt.Printf("---\n# Source: %s\n%s\n", name, text)
		}
	}
	return nil
}
