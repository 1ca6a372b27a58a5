package admissionservice

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
)

const (
	maxAddresses = 64
	maxRules     = 64
	// maxConditions is the limit on match conditions, as in webhook configurations.
	maxConditions = 64
	// maxSeconds bounds timeoutSeconds, as in webhook configurations.
	maxSeconds = 30
	maxPercent = 100
	maxPort    = 65535
	// maxBatch bounds the requests of one call, and maxDelay how long one waits, in
	// milliseconds.
	maxBatch = 128
	maxDelay = 100
)

// Problem is a mistake in one field.
type Problem struct {
	// Path is where it is in the spec: names of fields, and indexes of lists.
	Path []any
	// Reason is that of the cause of a 422.
	Reason string
	// Value is the wrong value.
	Value any
	// Message says what is wrong. For an unsupported value, Allowed are the supported ones.
	Message string
	Allowed []string
}

// String returns the problem in one line, as in a file.
func (p Problem) String() string {
	where := "spec"
	for _, part := range p.Path {
		if index, ok := part.(int); ok {
			where += fmt.Sprintf("[%d]", index)
		} else {
			where += fmt.Sprintf(".%v", part)
		}
	}
	switch p.Reason {
	case services.CauseRequired:
		return where + ": required value: " + p.Message
	case services.CauseNotSupported:
		return fmt.Sprintf("%s: unsupported value %q: supported values: %s", where, p.Value, strings.Join(p.Allowed, ", "))
	case services.CauseDuplicate:
		return fmt.Sprintf("%s: duplicate value %q", where, p.Value)
	}
	return fmt.Sprintf("%s: invalid value %v: %s", where, p.Value, p.Message)
}

// problems collects problems below a path.
type problems struct {
	all *[]Problem
	at  []any
}

func (p problems) in(path ...any) problems { return problems{p.all, slices.Concat(p.at, path)} }

func (p problems) add(found Problem) {
	found.Path = p.at
	*p.all = append(*p.all, found)
}

func (p problems) required(message string) {
	p.add(Problem{Reason: services.CauseRequired, Message: message})
}
func (p problems) invalid(value any, message string) {
	p.add(Problem{Reason: services.CauseInvalid, Value: value, Message: message})
}

func (p problems) oneOf(value string, allowed ...string) {
	switch {
	case value == "":
		p.required("must be one of " + strings.Join(allowed, ", "))
	case !slices.Contains(allowed, value):
		p.add(Problem{Reason: services.CauseNotSupported, Value: value, Allowed: allowed})
	}
}

func (p problems) between(value, low, high int32) {
	if value < low || value > high {
		p.invalid(value, fmt.Sprintf("must be between %d and %d, inclusive", low, high))
	}
}

// Check returns the problems of a spec; none if it is valid. compile returns why an
// expression cannot be used, nil if it can.
func (s *Spec) Check(compile func(expression string) error) []Problem {
	var all []Problem
	p := problems{all: &all}
	p.in("protocol").oneOf(s.Protocol, GRPC, Webhook)
	p.in("phase").oneOf(s.Phase, Mutate, Validate, Both)
	p.in("matchPolicy").oneOf(s.MatchPolicy, Exact, Equivalent)
	p.in("failurePolicy").oneOf(s.FailurePolicy, Fail, Ignore)
	p.in("sideEffects").oneOf(s.SideEffects, None, NoneOnDryRun, Some)
	p.in("mode").oneOf(s.Mode, Enforce, Shadow, Canary)
	p.in("timeoutSeconds").between(s.TimeoutSeconds, 1, maxSeconds)
	p.in("budgetPercent").between(s.BudgetPercent, 1, maxPercent)
	s.checkCanary(p.in("canaryPercent"))
	s.checkBatch(p.in("batch"))
	s.checkEndpoint(p.in("endpoint"))
	s.checkTrust(p.in("trust"))
	checkSelector(p.in("namespaceSelector"), s.NamespaceSelector)
	checkSelector(p.in("objectSelector"), s.ObjectSelector)
	s.checkConditions(p.in("matchConditions"), compile)
	switch {
	case len(s.Rules) == 0:
		p.in("rules").required("a service without rules is never asked")
	case len(s.Rules) > maxRules:
		p.in("rules").invalid(len(s.Rules), fmt.Sprintf("must have at most %d items", maxRules))
	}
	for i, r := range s.Rules {
		r.check(p.in("rules", i))
	}
	return all
}

func (s *Spec) checkConditions(p problems, compile func(string) error) {
	if len(s.MatchConditions) > maxConditions {
		p.invalid(len(s.MatchConditions), fmt.Sprintf("must have at most %d items", maxConditions))
		return
	}
	names := map[string]bool{}
	for i, c := range s.MatchConditions {
		name, expression := p.in(i, "name"), p.in(i, "expression")
		for _, problem := range validation.IsQualifiedName(c.Name) {
			name.invalid(c.Name, problem)
		}
		if names[c.Name] {
			name.add(Problem{Reason: services.CauseDuplicate, Value: c.Name})
		}
		names[c.Name] = true
		if strings.TrimSpace(c.Expression) == "" {
			expression.required("")
		} else if err := compile(c.Expression); err != nil {
			expression.invalid(c.Expression, err.Error())
		}
	}
}

func (s *Spec) checkCanary(p problems) {
	switch {
	case s.Mode == Canary && s.CanaryPercent == nil:
		p.required("mode Canary needs it")
	case s.Mode != Canary && s.CanaryPercent != nil:
		p.invalid(*s.CanaryPercent, "may only be set with mode Canary")
	case s.CanaryPercent != nil:
		p.between(*s.CanaryPercent, 0, maxPercent)
	}
}

func (s *Spec) checkBatch(p problems) {
	switch {
	case s.Batch == nil:
	case s.Protocol == Webhook:
		p.invalid("", "is for protocol grpc")
	default:
		p.in("maxRequests").between(s.Batch.MaxRequests, 2, maxBatch)
		p.in("maxDelayMilliseconds").between(s.Batch.MaxDelayMilliseconds, 1, maxDelay)
	}
}

func (s *Spec) checkEndpoint(p problems) {
	e := s.Endpoint
	given := 0
	for _, set := range []bool{len(e.Addresses) > 0, e.URL != "", e.Service != nil} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		p.required("exactly one of addresses, url, service is required")
		return
	case given > 1:
		p.invalid("", "exactly one of addresses, url, service may be set")
		return
	case e.URL != "" && s.Protocol == GRPC:
		p.in("url").invalid(e.URL, "is for protocol webhook: use addresses")
	case e.Addresses != nil && s.Protocol == Webhook:
		p.in("addresses").invalid(e.Addresses, "is for protocol grpc: use url")
	case e.URL != "":
		checkURL(p.in("url"), e.URL)
	case e.Service != nil:
		e.Service.check(p.in("service"), s.Protocol)
	}
	if len(e.Addresses) > maxAddresses {
		p.in("addresses").invalid(len(e.Addresses), fmt.Sprintf("must have at most %d items", maxAddresses))
	}
	for i, address := range e.Addresses {
		at := p.in("addresses", i)
		if slices.Contains(e.Addresses[:i], address) {
			at.add(Problem{Reason: services.CauseDuplicate, Value: address})
		}
		checkAddress(at, address)
	}
}

// checkAddress checks that an address has a host and a port.
func checkAddress(p problems, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		p.invalid(address, "must be host:port")
		return
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > maxPort {
		p.invalid(address, "the port must be a number between 1 and 65535")
	}
	if net.ParseIP(host) == nil {
		for _, problem := range validation.IsDNS1123Subdomain(host) {
			p.invalid(address, "the host: "+problem)
		}
	}
}

func checkURL(p problems, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		p.invalid(text, "must be a URL with a host")
	case u.Scheme != "https":
		p.invalid(text, "must begin with https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.invalid(text, "may have no user, no query and no fragment")
	}
}

func (s *Service) check(p problems, protocol string) {
	for _, given := range [...]struct{ field, value string }{{"namespace", s.Namespace}, {"name", s.Name}} {
		if given.value == "" {
			p.in(given.field).required("which Service it is")
			continue
		}
		for _, problem := range validation.IsDNS1123Label(given.value) {
			p.in(given.field).invalid(given.value, problem)
		}
	}
	if s.Port.Type == intstr.Int {
		p.in("port").between(s.Port.IntVal, 1, maxPort)
	} else {
		for _, problem := range validation.IsValidPortName(s.Port.StrVal) {
			p.in("port").invalid(s.Port.StrVal, problem)
		}
	}
	switch {
	case s.Path != "" && protocol == GRPC:
		p.in("path").invalid(s.Path, "is for protocol webhook")
	case s.Path != "" && (!strings.HasPrefix(s.Path, "/") || strings.ContainsAny(s.Path, "?#")):
		p.in("path").invalid(s.Path, "must begin with / and have no query")
	}
}

func (s *Spec) checkTrust(p problems) {
	if s.Trust.ServerName != "" {
		for _, problem := range validation.IsDNS1123Subdomain(s.Trust.ServerName) {
			p.in("serverName").invalid(s.Trust.ServerName, problem)
		}
	}
	rest := s.Trust.CABundle
	for found := 0; len(rest) > 0; found++ {
		block, more := pem.Decode(rest)
		if block == nil {
			if found == 0 {
				p.in("caBundle").invalid("<PEM certificates>", "contains no certificate")
			}
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			p.in("caBundle").invalid("<PEM certificates>", fmt.Sprintf("item %d is not a certificate", found))
			return
		}
		rest = more
	}
}

func checkSelector(p problems, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	if _, err := labelselector.Parse(s); err != nil {
		p.invalid("<selector>", err.Error())
	}
}

// check checks a rule. "*" must be the only item of its list.
func (r *Rule) check(p problems) {
	for _, list := range [...]struct {
		field  string
		values []string
	}{{"operations", r.Operations}, {"apiGroups", r.APIGroups}, {"apiVersions", r.APIVersions}, {"resources", r.Resources}} {
		field, values, at := list.field, list.values, p.in(list.field)
		if len(values) == 0 {
			at.required("must have an item")
		}
		for i, value := range values {
			switch {
			case value == "" && field != "apiGroups":
				at.in(i).required("")
			case slices.Contains(values[:i], value):
				at.in(i).add(Problem{Reason: services.CauseDuplicate, Value: value})
			case field == "operations":
				at.in(i).oneOf(value, "*", "CREATE", "UPDATE", "DELETE", "CONNECT")
			}
		}
		if len(values) > 1 && slices.Contains(values, "*") && field != "resources" {
			at.invalid(values, "if '*' is present, it must be the only item")
		}
	}
	p.in("scope").oneOf(r.Scope, "*", "Cluster", "Namespaced")
}
