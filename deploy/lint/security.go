package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// securityPage says which test shows which promise.
const securityPage = "docs/security.md"

func securityRules() []Rule {
	return []Rule{
		{"every test that the security page names exists",
			"name a test as `folder/file.go:Name`; a promise whose test is gone is none", checkSecurityPage},
	}
}

// checkSecurityPage looks for what the page names: a test or fuzz target as a function,
// and a trial as the name in a table.
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
			found = append(found, Finding{securityPage, fmt.Sprintf("names %s:%s, and there is no such file", path, name)})
			continue
		}
		sign := fmt.Sprintf("Name: %q", name)
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			sign = "\nfunc " + name + "("
		}
		if !strings.Contains(string(source), sign) {
			found = append(found, Finding{securityPage, fmt.Sprintf("names %s:%s, which is not there", path, name)})
		}
	}
	return found
}
