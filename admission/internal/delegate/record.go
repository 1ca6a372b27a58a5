package delegate

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services/admissionservice"
)

const (
	// maxAnnotations and maxAnnotation bound the audit annotations of one answer.
	maxAnnotations = 32
	maxAnnotation  = 8 << 10
	// maxError bounds the text of an error in annotations and the status.
	maxError = 512
)

// note is the value of the annotation about one answer.
type note struct {
	Mode     string `json:"mode"`
	Enforced bool   `json:"enforced"`
	Verdict  string `json:"verdict"`
	Mutated  bool   `json:"mutated,omitempty"`
	Took     string `json:"took"`
	Reason   string `json:"reason,omitempty"` // of a denial or failure
}

// record adds an answer to the review: an annotation, the time and, if the answer is
// enforced, its warnings and own annotations.
func (p *Plugin) record(r *review.Review, a *asked) {
	n := note{Mode: a.Spec.Mode, Enforced: a.enforced, Verdict: a.result(), Took: a.took.Round(time.Microsecond).String()}
	switch {
	case a.err != nil:
		n.Reason = short(plain(a.err).Error())
	case a.answer.Refusal != nil:
		n.Reason = short(a.answer.Refusal.Message)
	}
	n.Mutated = a.changed || !a.enforced && a.answer.Object != nil
	a.annotate(r, n)
	r.Timed(a.Name, a.took)
	if !a.enforced || a.err != nil {
		return
	}
	r.Warn(a.answer.Warnings...)
	added := 0
	for key, value := range a.answer.Annotations {
		if added++; added > maxAnnotations {
			break
		}
		if len(validation.IsQualifiedName(key)) == 0 && len(value) <= maxAnnotation {
			r.AnnotateFrom(a.Name, map[string]string{key: value})
		}
	}
}

// annotate adds a note about an answer, or the lack of one, to the review.
func (a *asked) annotate(r *review.Review, n note) {
	value, _ := json.Marshal(n) // plain values always encode
	key := fmt.Sprintf("%s.%s/%s", a.phase, admissionservice.Group, a.Name)
	if a.round > 0 {
		key += "_again"
	}
	r.Annotate(map[string]string{key: string(value)})
}

// short bounds a text.
func short(text string) string {
	if len(text) > maxError {
		return strings.ToValidUTF8(text[:maxError], "") + "..."
	}
	return text
}

// tally is what this process has counted about a service. It survives changes of its spec.
type tally struct {
	slow atomic.Bool // the last call whose answer does not count was not answered within the grace

	mu      sync.Mutex
	counts  admissionservice.Counts
	failure string
}

func (t *tally) count(a *asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.result() {
	case "allowed":
		t.counts.Allowed++
	case "denied":
		t.counts.Denied++
	default:
		t.counts.Failed++
		t.failure = short(plain(a.err).Error())
	}
}

func (t *tally) read() (admissionservice.Counts, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts, t.failure
}
