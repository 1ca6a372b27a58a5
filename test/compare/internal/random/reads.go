package random

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

// accept returns the accepted media types, JSON except once in some times.
func (s *sequence) accept(often int) string {
	if !s.one(often) {
		return ""
	}
	return pick(s.dice, s.values.Accepts...)
}

// selectors returns a label selector or a field selector, or none.
func (s *sequence) selectors() string {
	var all []string
	if s.one(2) {
		all = append(all, "labelSelector="+url.QueryEscape(pick(s.dice, "app=a", "app=b", "app", "!app", "app!=a", "app in (a,b)", "app notin (a)", "app in ()", "app=", "app==a", "x,app=a", "app>1", "app>a", "app=a,app=b", "-", "a b", "app=a,", ",app=a", "app in (a", "app=a=b", "!", "app in (a,,b)", " app = a ", "a/b/c=d", "app=\"a\"", "app in a", "x in (,a)")))
	}
	if s.one(3) {
		all = append(all, "fieldSelector="+url.QueryEscape(pick(s.dice, "metadata.name=a", "metadata.name!=a", "metadata.namespace="+Namespace, "metadata.name=a,metadata.name=b", "metadata.name", "metadata.name==a", "spec.mode=A", "spec.size=1", "spec.size=x", "spec.nodeName=", "status.phase=Running", "status.phase!=Running,spec.restartPolicy=Always", "x=y", "metadata.name=a\\,b", "metadata.name=a\\", "=a", "metadata.name in (a)", "metadata.name=A/", "type=Opaque", ",", "metadata.name=a,,")))
	}
	return strings.Join(all, "&")
}

func (s *sequence) get() (string, corpus.Step) {
	step := corpus.Step{Method: http.MethodGet, Path: s.to(s.name()), Accept: s.accept(2)}
	if s.one(4) {
		step.Query = pick(s.dice, "resourceVersion=0", "resourceVersion=<<version "+s.earlier()+">>", "resourceVersion=x", "resourceVersion=-1", "pretty=true", "includeObject=None", "includeObject=Object", "includeObject=odd", "unknown=x", "export=true", "timeout=1s", "watch=true&timeoutSeconds=1", "resourceVersion=999999999", "limit=1", "resourceVersionMatch=Exact")
	}
	return "get", step
}

func (s *sequence) list() (string, corpus.Step) {
	query := strings.FieldsFunc(s.selectors(), func(r rune) bool { return r == '&' })
	version := pick(s.dice, "0", "<<version "+s.earlier()+">>", "<<version create-1>>", "1", "", "x", "-1", "18446744073709551616", "00", "0x1")
	if s.one(3) {
		query = append(query, "resourceVersion="+version)
	}
	if s.one(5) {
		query = append(query, "resourceVersionMatch="+pick(s.dice, "Exact", "NotOlderThan", "odd", ""))
	}
	if s.one(3) {
		query = append(query, "limit="+pick(s.dice, "1", "1", "2", "0", "-1", "x", "", "500"))
	}
	if s.one(5) {
		query = append(query, "continue="+pick(s.dice, "<<continue "+s.earlier()+">>", "x", "", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0"))
	}
	if s.one(8) {
		query = append(query, pick(s.dice, "timeoutSeconds=1", "timeoutSeconds=x", "allowWatchBookmarks=true", "sendInitialEvents=true", "sendInitialEvents=false", "watch=0", "watch=false", "watch=x&timeoutSeconds=1", "includeObject=Object", "includeObject=x", "pretty=1", "limit=2", "labelSelector=x", "fieldSelector=", "labelSelector="))
	}
	return "list", corpus.Step{Method: http.MethodGet, Path: s.collection(), Query: strings.Join(query, "&"), Accept: s.accept(3)}
}

// watch returns what happened since an earlier step, or what there is.
func (s *sequence) watch() (string, corpus.Step) {
	query := []string{"watch=" + pick(s.dice, "1", "true"), "timeoutSeconds=1"}
	switch s.IntN(8) {
	case 0:
		query = append(query, "resourceVersion=0")
	case 1:
	case 2:
		query = append(query, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
	default:
		query = append(query, "resourceVersion=<<version create-1>>")
	}
	if s.one(3) {
		query = append(query, "allowWatchBookmarks=true")
	}
	if chosen := s.selectors(); chosen != "" {
		query = append(query, chosen)
	}
	return "watch", corpus.Step{Method: http.MethodGet, Path: s.collection(), Query: strings.Join(query, "&"), Accept: s.accept(4)}
}

// odd returns a request with an odd path or method.
func (s *sequence) odd() (string, corpus.Step) {
	collection := s.collection()
	step := corpus.Step{Method: pick(s.dice, http.MethodGet, http.MethodGet, http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodHead, http.MethodOptions, "TRACE", "PURGE")}
	name := pick(s.dice, "A", strings.Repeat("a", 254), "a%2Fb", "a%2fstatus", "a/", "a//", "/a", "./a", "../a", "%2e%2e", "..", ".", "a%00", "a%20b", "a/status/x", "a/x/y/z", "a+b", "é", "%ff", "a?x", "a%3Fx", "a%25", "a:b", "a;b", "~", "a.b", "-", "a/status", "a/scale", "", "a")
	step.Path = collection + "/" + name
	if s.one(5) {
		parts := strings.Split(collection, "/namespaces/")
		plural := collection[strings.LastIndex(collection, "/"):]
		step.Path = pick(s.dice, parts[0]+"/namespaces/missing"+plural, parts[0]+"/namespaces/missing"+plural+"/a", parts[0]+"/namespaces//"+plural, parts[0]+"/namespaces/A"+plural, parts[0]+"/Namespaces/"+Namespace+plural, "/"+collection,
			strings.ToUpper(collection), collection+"s", parts[0]+plural+"/a", parts[0]+"/watch/namespaces/missing"+plural+"?timeoutSeconds=1", parts[0]+"/namespaces/"+Namespace, parts[0]+"/namespaces/"+Namespace+"/", parts[0], parts[0]+"/", "/apis/x/v1/y", "/api/v2", "/apis/apps", "/apis/", "/x",
			parts[0]+"/proxy"+plural, parts[0]+"/namespaces/"+Namespace+plural+"/a/proxy/x")
	}
	if step.Method == http.MethodPut || step.Method == http.MethodPost || step.Method == http.MethodPatch {
		step = s.encode(step, s.whole("a"))
	}
	return "odd", step
}
