package frontdoor

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/services"
)

// auditRecord collects what the stages have to say about a request for the record.
type auditRecord struct {
	ID          string
	Annotations map[string]string
}

// annotate notes a fact. Values must not be confidential.
func (a *auditRecord) annotate(key, value string) {
	if a.Annotations == nil {
		a.Annotations = map[string]string{}
	}
	a.Annotations[key] = value
}

// auditLog writes a line of JSON per finished request; nil writes nothing.
type auditLog struct {
	apiVersion string
	mu         sync.Mutex
	w          io.Writer
}

// auditEvent is a line of the audit log: the field's audit Event at level Metadata.
type auditEvent struct {
	Kind             string            `json:"kind"`
	APIVersion       string            `json:"apiVersion"`
	Level            string            `json:"level"`
	AuditID          string            `json:"auditID"`
	Stage            string            `json:"stage"`
	RequestURI       string            `json:"requestURI"`
	Verb             string            `json:"verb"`
	User             auditUser         `json:"user"`
	ImpersonatedUser *auditUser        `json:"impersonatedUser,omitempty"`
	SourceIPs        []string          `json:"sourceIPs,omitempty"`
	UserAgent        string            `json:"userAgent,omitempty"`
	ObjectRef        *auditObject      `json:"objectRef,omitempty"`
	ResponseStatus   map[string]int    `json:"responseStatus"`
	Received         time.Time         `json:"requestReceivedTimestamp"`
	StageTimestamp   time.Time         `json:"stageTimestamp"`
	Annotations      map[string]string `json:"annotations,omitempty"`
}

type auditUser struct {
	Username string              `json:"username"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

type auditObject struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	APIGroup    string `json:"apiGroup,omitempty"`
	APIVersion  string `json:"apiVersion"`
	Subresource string `json:"subresource,omitempty"`
}

// audited gives the request its record and writes it when the request is over.
func (d *door) audited(next Handler) Handler {
	return func(w http.ResponseWriter, r *Request) error {
		received := time.Now()
		r.Audit = &auditRecord{ID: r.Header.Get("Audit-Id")}
		if r.Audit.ID == "" {
			r.Audit.ID = string(uuid.NewUUID())
		}
		w.Header().Set("Audit-Id", r.Audit.ID)
		w.Header().Set("Cache-Control", "no-cache, private")
		if r.Type != nil && r.Type.Deprecation != nil {
			d.signalDeprecation(w, r)
		}
		err := next(w, r)
		if d.auditLog != nil {
			d.auditLog.write(r, received, statusOf(w, err))
		}
		return err
	}
}

// statusOf returns the status that a request is or will be answered with.
func statusOf(w http.ResponseWriter, err error) int {
	if err != nil {
		return int(services.AsStatus(err).Code)
	}
	if a, ok := w.(*answer); ok && a.status != 0 {
		return a.status
	}
	return http.StatusOK
}

func (l *auditLog) write(r *Request, received time.Time, status int) {
	e := auditEvent{
		Kind: "Event", APIVersion: l.apiVersion, Level: "Metadata", AuditID: r.Audit.ID, Stage: "ResponseComplete",
		RequestURI: r.URL.RequestURI(), Verb: r.Verb, User: toAuditUser(r.Caller), UserAgent: r.UserAgent(),
		SourceIPs: []string{r.RemoteAddr}, ResponseStatus: map[string]int{"code": status},
		Received: received, StageTimestamp: time.Now(), Annotations: r.Audit.Annotations,
	}
	if r.User.Name != r.Caller.Name {
		user := toAuditUser(r.User)
		e.ImpersonatedUser = &user
	}
	if r.Type != nil {
		e.ObjectRef = &auditObject{Resource: r.Type.Resource, Namespace: r.Namespace, Name: r.Name,
			APIGroup: r.Type.Group, APIVersion: r.Type.Version, Subresource: r.subresourceName()}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return // nothing in it can fail to marshal
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(append(line, '\n'))
}

func toAuditUser(u services.UserInfo) auditUser {
	return auditUser{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}
