// Package audit logs requests with their users and responses. The front door's stages and
// handlers provide the content. It rejects a request only in mode blocking-strict. It serves
// "Other signals" of the specification.
package audit

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services"
)

// Record holds the ID and annotations of a request for the audit log. It is safe for
// concurrent use.
type Record struct {
	ID       string
	Received time.Time
	// Rule is what the policy says about the request; nil without a policy, and until the
	// caller is known.
	Rule *Rule
	// Response is the captured response; nil if its body is not logged.
	Response *Capture

	mu          sync.Mutex
	annotations map[string]string // of the front door
	noted       map[string]string // of admission, whose plugins, webhooks and policies choose the keys
	decided     string            // the group of the annotations about the decision; empty if there is none
	decision    services.Decision
	created     string // the name of the object in the body of a create; empty for a generated one
}

// Created sets the name that the object of a create has in its body: its path has none.
func (a *Record) Created(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.created = name
}

// Name returns the name that Created has set, for the reference of the event.
func (a *Record) Name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.created
}

// Decided sets the annotations about the decision of authz: in a group, as Kubernetes does, and
// in that of the suite the rule that allowed the request, or came closest to it.
func (a *Record) Decided(group string, d services.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decided, a.decision = group, d
}

// ownGroup is the group of the suite's own annotations, ruleAnnotation and missAnnotation are
// their keys.
const (
	ownGroup       = "authorization.portico.dev"
	ruleAnnotation = ownGroup + "/rule"
	missAnnotation = ownGroup + "/nearest-miss"
)

// Annotate adds an annotation of the front door. Values must not be confidential.
func (a *Record) Annotate(key, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.annotations == nil {
		a.annotations = map[string]string{}
	}
	a.annotations[key] = value
}

// Note adds an annotation of admission. The first value of a key is kept, as in Kubernetes. A webhook
// or policy chooses its name, which is the group of its keys: it must not change what the front door
// says, nor add to what is said about the decision of authz.
func (a *Record) Note(key, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, has := a.noted[key]; has {
		return
	}
	if a.noted == nil {
		a.noted = map[string]string{}
	}
	a.noted[key] = value
}

// Annotations returns a copy of the annotations.
func (a *Record) Annotations() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.decided == "" && len(a.annotations)+len(a.noted) == 0 {
		return nil
	}
	all := map[string]string{}
	for key, value := range a.noted {
		if group, _, _ := strings.Cut(key, "/"); group != ownGroup && group != a.decided {
			all[key] = value
		}
	}
	maps.Copy(all, a.annotations)
	if a.decided == "" {
		return all
	}
	all[a.decided+"/decision"], all[a.decided+"/reason"] = "forbid", a.decision.Reason
	if a.decision.Allowed {
		all[a.decided+"/decision"] = "allow"
	}
	if a.decision.Rule != "" {
		all[ruleAnnotation] = a.decision.Rule
	}
	if a.decision.Miss != "" {
		all[missAnnotation] = a.decision.Miss
	}
	return all
}

// Log writes events; nil writes nothing.
type Log struct {
	apiVersion string
	outputs    []output
	sources    sources
}

// output takes the lines of events: JSON, or text if it is legacy.
type output struct {
	legacy bool
	// strict refuses a request whose first event is not written.
	strict bool
	// most bounds the bytes of a line; 0 for the bound of all. dropped counts lines that are longer.
	most    int
	dropped prometheus.Counter
	// take reports whether the line is written, or waits to be.
	take func(line []byte) bool
}

// event is a line of the audit log: an audit Event.
type event struct {
	Kind             string            `json:"kind"`
	APIVersion       string            `json:"apiVersion"`
	Level            string            `json:"level"`
	AuditID          string            `json:"auditID"`
	Stage            string            `json:"stage"`
	RequestURI       string            `json:"requestURI"`
	Verb             string            `json:"verb"`
	User             user              `json:"user"`
	ImpersonatedUser *user             `json:"impersonatedUser,omitempty"`
	Authentication   *authentication   `json:"authenticationMetadata,omitempty"`
	SourceIPs        []string          `json:"sourceIPs,omitempty"`
	UserAgent        string            `json:"userAgent,omitempty"`
	ObjectRef        *ObjectRef        `json:"objectRef,omitempty"`
	ResponseStatus   any               `json:"responseStatus,omitempty"`
	RequestObject    json.RawMessage   `json:"requestObject,omitempty"`
	ResponseObject   json.RawMessage   `json:"responseObject,omitempty"`
	Received         time.Time         `json:"requestReceivedTimestamp"`
	StageTimestamp   time.Time         `json:"stageTimestamp"`
	Annotations      map[string]string `json:"annotations,omitempty"`

	code int // of the response
}

type user struct {
	Username string              `json:"username"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// authentication says how the user of a request was found.
type authentication struct {
	Constraint string `json:"impersonationConstraint"`
}

// ObjectRef names the object of a request.
type ObjectRef struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	APIGroup    string `json:"apiGroup,omitempty"`
	APIVersion  string `json:"apiVersion"`
	Subresource string `json:"subresource,omitempty"`
}

// NewLog returns a log that writes events of an apiVersion to w, in mode blocking-strict.
func NewLog(w io.Writer, apiVersion string) *Log {
	write := writer(w)
	return &Log{apiVersion: apiVersion, outputs: []output{{strict: true, take: func(line []byte) bool {
		return write(context.Background(), nil, [][]byte{line}) == 1
	}}}}
}

// Stages of a request.
const (
	RequestReceived  = "RequestReceived"
	ResponseStarted  = "ResponseStarted"
	ResponseComplete = "ResponseComplete"
	Panic            = "Panic"
)

// Outcome is a request with its record.
type Outcome struct {
	Stage        string
	Record       *Record
	Request      *http.Request
	Verb         string
	Caller       services.UserInfo
	Impersonated *services.UserInfo // the user in whose name the caller asks; nil for their own
	Constraint   string             // the verb of constrained impersonation; empty for others
	Object       *ObjectRef         // nil for non-resource paths
	Status       int                // 0 before the response
	Failure      *services.Status   // the error that the request is answered with
	Bodies       Bodies
}

// status returns the responseStatus of the event. Errors about credentials may quote them,
// so that their text is left out where the bodies are.
func (o *Outcome) status() any {
	switch {
	case o.Status == 0:
		return nil
	case o.Record.Rule == nil:
		return map[string]int{"code": o.Status}
	}
	s := metav1.Status{Code: int32(o.Status)}
	if o.Failure != nil {
		s.Status, s.Reason, s.Message = metav1.StatusFailure, metav1.StatusReason(bounded(o.Failure.Reason, maxText)), bounded(o.Failure.Message, maxMessage)
		if o.Object.confidential() && !o.Record.Rule.LogsRequest() {
			s.Message = ""
		}
	}
	return s
}

// confidential reports whether objects of the type hold credentials.
func (r *ObjectRef) confidential() bool {
	if r == nil {
		return false
	}
	switch r.Resource {
	case "secrets", "tokenreviews":
		return true
	case "serviceaccounts":
		return r.Subresource == "token"
	}
	return false
}

// Write writes the event of a request, unless its rule leaves it out. It reports whether all outputs have
// it that must have it before the request continues.
func (l *Log) Write(o Outcome) (written bool) {
	if !o.Record.Rule.Logs(o.Stage) {
		return true
	}
	e := l.event(&o)
	line := l.line(e, maxLine)
	written = true
	for _, to := range l.outputs {
		if taken := to.takeEvent(l, e, line); to.strict {
			written = written && taken
		}
	}
	return written
}

// takeEvent takes an event, of which line is the JSON.
func (o *output) takeEvent(l *Log, e *event, line []byte) bool {
	if o.legacy {
		return o.take(e.legacy())
	}
	if o.most > 0 && len(line) > o.most {
		short := *e
		short.Annotations = maps.Clone(e.Annotations)
		if line = l.line(&short, o.most); len(line) > o.most {
			o.dropped.Inc()
			return false
		}
	}
	return o.take(line)
}

// event returns the event of a request.
func (l *Log) event(o *Outcome) *event {
	e := &event{
		Kind: "Event", APIVersion: l.apiVersion, Level: string(o.Record.Rule.level()), AuditID: o.Record.ID, Stage: o.Stage,
		RequestURI: bounded(o.Request.URL.RequestURI(), maxURI), Verb: o.Verb, User: userOf(o.Caller), UserAgent: bounded(o.Request.UserAgent(), maxText),
		SourceIPs: l.sources.of(o.Request), ResponseStatus: o.status(),
		Received: o.Record.Received, StageTimestamp: time.Now(), Annotations: boundedNotes(o.Record.Annotations()), ObjectRef: o.Object.bounded(), code: o.Status,
	}
	if o.Impersonated != nil {
		impersonated := userOf(*o.Impersonated)
		e.ImpersonatedUser = &impersonated
	}
	if o.Constraint != "" {
		e.Authentication = &authentication{o.Constraint}
	}
	e.RequestObject, e.ResponseObject = o.Bodies.Request, o.Bodies.Response
	if o.Bodies.Truncated {
		l.markTruncated(e)
	}
	return e
}

func userOf(u services.UserInfo) user {
	return user{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}.bounded()
}
