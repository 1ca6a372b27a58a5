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
	named := regexp.MustCompile("`([\\w./-]+\\.go):(\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) == 0 {
		return []Finding{{securityPage, "names no test"}}
	}
	for _, n := range named {
		path, name := n[1], n[2]
		source, err := os.ReadFile(filepath.Join(w.root, path))
		if err != nil {
			found = append(found, Finding{securityPage, fmt.Sprintf("names %s:%s, but the file does not exist", path, name)})
			continue
		}
		definition := fmt.Sprintf("Name: %q", name)
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			definition = "\nfunc " + name + "("
		}
		if !strings.Contains(string(source), definition) {
			found = append(found, Finding{securityPage, fmt.Sprintf("names %s:%s, which does not exist", path, name)})
		}
	}
	return found
}
