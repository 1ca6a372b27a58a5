package e2e

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// heldObject tests both phases of the deletion of an object with a finalizer.
func heldObject(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("v1", "configmaps/held")
	s.do(s.created, "POST "+s.in("v1", "configmaps"), plain(`"name":"held","finalizers":["example.com/a","example.com/b"]`, ""))
	marked := s.do(http.StatusOK, "DELETE "+path, "")
	if marked.GetDeletionTimestamp() == nil || len(marked.GetFinalizers()) != 2 {
		t.Errorf("the answer to the delete: %s", marked.Body)
	}
	if again := s.do(http.StatusOK, "DELETE "+path, ""); again.GetResourceVersion() != marked.GetResourceVersion() {
		t.Errorf("another delete made another version")
	}
	s.do(http.StatusOK, "PATCH "+path, `{"data":{"still":"changes"}}`)
	s.names(s.do(http.StatusUnprocessableEntity, "PATCH "+path, `{"metadata":{"finalizers":["example.com/a","example.com/b","example.com/c"]}}`), "example.com/c")
	undead := s.do(http.StatusOK, "PATCH "+path, `{"metadata":{"deletionTimestamp":null,"finalizers":["example.com/b"]}}`)
	if undead.GetDeletionTimestamp() == nil || len(undead.GetFinalizers()) != 1 {
		t.Errorf("the answer to the first removal: %s", undead.Body)
	}
	s.do(http.StatusOK, "PUT "+path, plain(`"name":"held"`, ""))
	s.do(http.StatusNotFound, "GET "+path, "")
	if next := s.do(s.created, "POST "+s.in("v1", "configmaps"), plain(`"name":"held"`, "")); next.GetUID() == marked.GetUID() || next.GetDeletionTimestamp() != nil {
		t.Errorf("its successor: %s", next.Body)
	}
}

// deleteOptions tests propagation policies and invalid options.
func deleteOptions(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	path := s.in("v1", "configmaps")
	held := func(options string) []string {
		s.do(s.created, "POST "+path, plain(`"name":"a","finalizers":["`+holder+`"]`, ""))
		code := http.StatusOK
		if options == `{"orphanDependents":false}` {
			code = http.StatusAccepted
		}
		answer := s.do(code, "DELETE "+path+"/a", options)
		s.do(http.StatusOK, "PATCH "+path+"/a", `{"metadata":{"finalizers":null}}`)
		return answer.GetFinalizers()
	}
	for options, want := range map[string]string{
		`{"propagationPolicy":"Foreground"}`: metav1.FinalizerDeleteDependents,
		`{"propagationPolicy":"Orphan"}`:     metav1.FinalizerOrphanDependents,
		`{"orphanDependents":true}`:          metav1.FinalizerOrphanDependents,
		`{"propagationPolicy":"Background"}`: "",
		`{"orphanDependents":false}`:         "",
		`{"gracePeriodSeconds":0}`:           "",
	} {
		finalizers := slices.DeleteFunc(held(options), func(f string) bool { return f == holder })
		if want == "" && len(finalizers) > 0 || want != "" && !slices.Equal(finalizers, []string{want}) {
			t.Errorf("%s adds the finalizers %q, want %q", options, finalizers, want)
		}
	}
	made := s.do(s.created, "POST "+path, plain(`"name":"b"`, ""))
	for _, options := range []string{`{"propagationPolicy":"Sometimes"}`, `{"propagationPolicy":"Orphan","orphanDependents":true}`} {
		s.do(http.StatusUnprocessableEntity, "DELETE "+path+"/b", options)
	}
	s.do(http.StatusBadRequest, "DELETE "+path+"/b", `{"propagationPolicy":`)
	if now := s.do(http.StatusOK, "GET "+path+"/b", ""); now.Body != made.Body {
		t.Errorf("a refused delete changed it: %s", now.Body)
	}
	s.do(http.StatusOK, "DELETE "+path+"/b?gracePeriodSeconds=0&propagationPolicy=Background", "")
	s.do(http.StatusNotFound, "DELETE "+path+"/b", "")
}
