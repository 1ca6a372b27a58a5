package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// securityPage lists the tests of the security guarantees.
const securityPage = "docs/security.md"

func securityRules() []Rule {
	return []Rule{
		{"every test that the security page names exists",
			"refer to an existing test as `folder/file.go:Name`; every guarantee needs a test", checkSecurityPage},
	}
}

// checkSecurityPage searches for the tests in the page: tests and fuzz targets as functions,
// and trials as names in a table.
func checkSecurityPage(w *Workspace) (found []Finding) {
	page, err := os.ReadFile(filepath.Join(w.root, securityPage))
	if err != nil {
		return []Finding{{securityPage, err.Error()}}
	}
	found = missingTests(w, securityPage, string(page))
	if !testNames.Match(page) {
		found = append(found, Finding{securityPage, "names no test"})
	}
	return found
}

// testNames matches the name of a test on a page.
var testNames = regexp.MustCompile("`([\\w./-]+\\.go):(\\w+)`")

// missingTests returns the tests that a page names and that do not exist.
func missingTests(w *Workspace, name, page string) (found []Finding) {
	for _, n := range testNames.FindAllStringSubmatch(page, -1) {
		path, test := n[1], n[2]
		source, err := os.ReadFile(filepath.Join(w.root, path))
		if err != nil {
			found = append(found, Finding{name, fmt.Sprintf("names %s:%s, but the file does not exist", path, test)})
			continue
		}
		definition := fmt.Sprintf("Name: %q", test)
		if strings.HasPrefix(test, "Test") || strings.HasPrefix(test, "Fuzz") {
			definition = "\nfunc " + test + "("
		}
		if !strings.Contains(string(source), definition) {
			found = append(found, Finding{name, fmt.Sprintf("names %s:%s, which does not exist", path, test)})
		}
	}
	return found
}
