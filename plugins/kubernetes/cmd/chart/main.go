// chart renders the chart as plain manifests, for those who do not have Helm: chart DIR NAMESPACE [VALUES.yaml].
package main

import (
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chartutil"

	"hasten.dev/kubernetes/internal/chart"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 || len(arguments) > 3 {
		return errors.New("chart DIR NAMESPACE [VALUES.yaml]")
	}
	from, err := chart.Load(arguments[0])
	if err != nil {
		return err
	}
	var values chartutil.Values
	if len(arguments) > 2 {
		if values, err = chartutil.ReadValuesFile(arguments[2]); err != nil {
			return err
		}
	}
	text, err := chart.Render(from, arguments[1], values)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(text)
	return err
}
