package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/ledger"
)

// matrixPage has the table of the texts that others determine.
const matrixPage = "docs/security-matrix.md"

func textRules() []Rule {
	return []Rule{
		{"texts of others are read by package ledger",
			"read it with ledger.Account.Read, or parse it with ledger.ParseLabels, ledger.ParseFields or labelselector.Parse; what is not from others is listed with the reason in tools/lint/texts.go", checkReaders},
		{"the table of the security matrix has every text of package ledger, with its bounds",
			"change the row of docs/security-matrix.md as the finding says", checkTextTable},
	}
}

// readers are functions that read or parse a text of any size.
func readers() map[string][]string {
	return map[string][]string{
		"io": {"ReadAll"}, "goautoneg": {"ParseAccept"}, "gzip": {"NewReader"}, "flate": {"NewReader"}, "zlib": {"NewReader"}, "json": {"NewDecoder"}, "yaml": {"NewDecoder"},
		"labels": {"Parse", "ParseToRequirements"}, "fields": {"ParseSelector"}, "metav1": {"LabelSelectorAsSelector"},
		"grpc": {"MaxCallRecvMsgSize"},
	}
}

// ownTexts are the files that read what is not from others, or is bounded otherwise, with the reason.
func ownTexts() map[string]string {
	return map[string]string{
		"admission/internal/config/config.go":                           "a file of the operator",
		"admission/internal/usage/usage.go":                             "an object that is stored, and so bounded as a body",
		"admission/internal/replicas/bounded.go":                        "weighs the message in its codec",
		"admission/sdk/reviews.go":                                      "requests of the suite, within MaxRequestBytes",
		"admission/sdk/sdktest/reviews.go":                              "for tests of admission services",
		"authn/internal/issuers/client.go":                              "read by services/kit/oidchttp before, within ledger.IssuerAnswer",
		"authn/internal/issuers/distributed.go":                         "read by services/kit/oidchttp before, within ledger.IssuerAnswer",
		"csr-signer/internal/responder/serve.go":                        "an OCSP request, within maxRequest",
		"frontdoor/internal/handlers/connect/bounded.go":                "a page that streams, within maxPage",
		"frontdoor/internal/handlers/connect/log.go":                    "the error of a node, of which only maxLogError is read",
		"frontdoor/internal/handlers/console/oidc.go":                   "a form of the console, within maxExchange",
		"frontdoor/internal/handlers/discovery/document.go":             "a document of this process, and headers within ledger.Header",
		"frontdoor/internal/handlers/discovery/fragments/node.go":       "a document of this process, in which those of extensions were weighed when they were read",
		"frontdoor/internal/handlers/discovery/fragments/text.go":       "what this process has compressed",
		"frontdoor/internal/handlers/operations/peers/wire.go":          "answers of other front doors, within maxAnswer and maxQuestion",
		"frontdoor/internal/http/audit/body.go":                         "a body of at most MaxBody",
		"frontdoor/internal/typesystem/catalogue/published/document.go": "data of the program",
		"frontdoor/internal/typesystem/datafiles/datafiles.go":          "data of the program",
		"frontdoor/internal/wire/layout/order.go":                       "a body, which was weighed before",
		"lifecycle/internal/apitest/serve.go":                           "for tests",
		"services/kit/auditchain/verify.go":                             "a file of the operator",
		"services/kit/etcd/atrest/internal/kms/plugin.go":               "bounded by ledger.PluginAnswer",
		"services/kit/run/peer.go":                                      "answers of the suite's own services",
		"services/kit/run/sources.go":                                   "the operator's configuration file, of at most 1 MiB",
		"services/rpc/part.go":                                          "objects of the store",
		"store/embedded/snapshot.go":                                    "the error of the embedded etcd, within a limit",
	}
}

func checkReaders(w *Workspace) (found []Finding) {
	used := map[string]bool{}
	for _, p := range w.Packages {
		dir := filepath.ToSlash(p.Dir)
		module := moduleOf(dir)
		if module == composer || dir == "services/ledger" || dir == "services/labelselector" || strings.HasPrefix(dir, "services/kit/kittest") || strings.HasPrefix(dir, "services/golden") {
			continue
		}
		for _, f := range p.source() {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := s.X.(*ast.Ident)
				if !ok || !slices.Contains(readers()[of.Name], s.Sel.Name) {
					return true
				}
				if _, own := ownTexts()[f.Path]; own {
					used[f.Path] = true
				} else {
					found = append(found, Finding{w.at(f, s), of.Name + "." + s.Sel.Name})
				}
				return true
			})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(ownTexts())) {
		if _, err := os.Stat(filepath.Join(w.root, "tools/lint/texts.go")); err == nil && !used[path] {
			found = append(found, Finding{path, "is listed in ownTexts, but reads nothing"})
		}
	}
	return found
}

// textRow is the beginning of a text's row in the table.
func textRow(t ledger.Text) string {
	number := func(n int64) string {
		switch {
		case n == 0:
			return "–"
		case n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
		return fmt.Sprint(n)
	}
	count := func(n int64) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", t.Name, number(t.Bytes), count(int64(t.Values)), count(int64(t.Depth)), count(t.Weight))
}

func checkTextTable(w *Workspace) (found []Finding) {
	page, err := os.ReadFile(filepath.Join(w.root, matrixPage))
	if err != nil {
		return []Finding{{matrixPage, err.Error()}}
	}
	for _, t := range ledger.All() {
		if row := textRow(t); !strings.Contains(string(page), "\n"+row) {
			found = append(found, Finding{matrixPage, "has no row " + row})
		}
	}
	return append(found, missingTests(w, matrixPage, string(page))...)
}
