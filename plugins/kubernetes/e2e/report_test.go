//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// seen is what happened, and after how long, in the order of the tests.
var seen []finding

// whole are the tests of a whole run. A part of it leaves no report.
var whole = map[string]bool{"TestDevicesOnARealKubelet": false, "TestClaimsOnARealKubelet": false, "TestTheChartFromInstallationToRemoval": false,
	"TestAStockServerOnARealNode": false, "TestTheAPIServerTakesEveryVariantAndExample": false, "TestEveryCommandOfTheDocs": false, "TestOtherWaysToTheLibraries": false}

// note keeps a row for the report.
func note(t *testing.T, what string, took time.Duration) {
	t.Helper()
	t.Logf("%s after %s", what, took.Round(100*time.Millisecond))
	seen = append(seen, finding{strings.ToUpper(what[:1]) + what[1:], took.Round(100 * time.Millisecond).String()})
}

// ran says that a test has begun. If it fails, so does the run, and there is no report.
func ran(t *testing.T) {
	t.Helper()
	whole[t.Name()] = true
}

func TestMain(m *testing.M) {
	code := m.Run()
	if folder := os.Getenv("HASTEN_E2E_REPORT"); code == 0 && folder != "" && complete() {
		if err := report(folder); err != nil {
			fmt.Fprintln(os.Stderr, "the report cannot be kept:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func complete() bool {
	for _, done := range whole {
		if !done {
			return false
		}
	}
	return true
}

// report is kept, and quoted in the docs between two marks.
func report(folder string) error {
	text, err := json.MarshalIndent(map[string]any{"schema": 1, "kind": "kubernetes-e2e", "cpu": processor(), "threads": runtime.NumCPU(),
		"kubernetes": "1.36.3", "date": time.Now().UTC().Format(time.DateOnly), "rows": seen}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "kubernetes-e2e.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return quote("e2e", "| what | after |", seen)
}

// quote puts rows between two marks of the docs.
func quote(name, head string, rows []finding) error {
	var table strings.Builder
	table.WriteString(head + "\n|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s | %s |\n", row.What, row.Value)
	}
	page := filepath.Join(root, "docs/kubernetes.md")
	docs, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	marks := regexp.MustCompile(`(?s)(<!-- ` + name + `: begin [^\n]*-->\n).*?(<!-- ` + name + `: end -->)`)
	if !marks.Match(docs) {
		return fmt.Errorf("%s has no marks for the table of %s", page, name)
	}
	return os.WriteFile(page, marks.ReplaceAll(docs, []byte("${1}"+table.String()+"${2}")), 0o644)
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return "unknown"
}
