package audit

import (
	"strings"

	authn "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/audit"
	format "k8s.io/apiserver/pkg/audit"
)

// legacy returns the event as a line of text, in the format "legacy" of Kubernetes.
func (e *event) legacy() []byte {
	out := &audit.Event{
		AuditID: types.UID(e.AuditID), Stage: audit.Stage(e.Stage), Verb: e.Verb, RequestURI: e.RequestURI, UserAgent: e.UserAgent,
		SourceIPs: e.SourceIPs, User: authn.UserInfo{Username: e.User.Username, Groups: e.User.Groups},
		RequestReceivedTimestamp: metav1.NewMicroTime(e.Received), StageTimestamp: metav1.NewMicroTime(e.StageTimestamp),
	}
	if u := e.ImpersonatedUser; u != nil {
		out.ImpersonatedUser = &authn.UserInfo{Username: u.Username, Groups: u.Groups}
	}
	if o := e.ObjectRef; o != nil {
		out.ObjectRef = &audit.ObjectReference{Namespace: o.Namespace}
	}
	if e.code != 0 {
		out.ResponseStatus = &metav1.Status{Code: int32(e.code)}
	}
	return []byte(strings.Join(strings.FieldsFunc(format.EventString(out), breaks), " "))
}

// breaks reports whether a character ends a line.
func breaks(c rune) bool { return c == '\n' || c == '\r' }
