package ledger

const (
	kib, mib = 1 << 10, 1 << 20
	// anyValue is what a value takes at most in decoded JSON without a type: an object with one member is two values,
	// and takes a map with a group of eight entries.
	anyValue = 200
)

// The texts that others determine. docs/security-matrix.md has the same table, with owners and trials.
var (
	// Body is the body of a request. Protobuf is weighed by the fields of its type instead.
	Body = Text{Name: "the request body", Bytes: 3 * mib, Values: 500_000, Weight: anyValue}
	// Selector is a label or field selector, in the query, in an access review or in an object.
	Selector = Text{Name: "the selector", Bytes: 64 * kib, Values: 10_000, Weight: 300}
	// Query is the query of a URL; its values are parameters.
	Query = Text{Name: "the query", Bytes: mib, Values: 10_000, Weight: 100}
	// Path is the path of a URL; its values are segments.
	Path = Text{Name: "the path", Bytes: mib, Values: 1000, Weight: 50}
	// Header is a header that is a list, such as Accept. What follows is ignored.
	Header = Text{Name: "a header with a list", Bytes: 16 * kib, Values: 200, Weight: 1000}
	// AdmissionAnswer is the AdmissionReview that a webhook returns.
	AdmissionAnswer = Text{Name: "the response of the admission webhook", Bytes: 8 * mib, Values: 20_000, Depth: 100, Weight: anyValue}
	// ConversionAnswer is the ConversionReview that a webhook returns. Its size is also bounded by that of the
	// objects that were sent: see Converted.
	ConversionAnswer = Text{Name: "the response of the conversion webhook", Bytes: 256 * mib, Values: 5_000_000, Depth: 600, Weight: anyValue}
	// DecisionAnswer is the SubjectAccessReview or ImageReview that a webhook returns, or what an audit webhook does.
	DecisionAnswer = Text{Name: "the decision of the webhook", Bytes: 64 * kib, Values: 1000, Depth: 20, Weight: anyValue}
	// ReviewAnswer is the TokenReview that a webhook returns: a user may be in many groups.
	ReviewAnswer = Text{Name: "the review of the webhook", Bytes: mib, Values: 20_000, Depth: 20, Weight: anyValue}
	// IssuerAnswer is a document of an issuer of ID tokens: its configuration, its keys, or claims of a user.
	IssuerAnswer = Text{Name: "the response of the issuer", Bytes: mib, Values: 20_000, Depth: 20, Weight: anyValue}
	// ServiceAnswer is the message that an admission service returns by gRPC; its values are fields. A batch
	// may have one for each of its requests.
	ServiceAnswer = Text{Name: "the response of the admission service", Bytes: 8 * mib, Values: 20_000, Depth: 20, Weight: 500}
	// ExtensionResources is the discovery document of an extension.
	ExtensionResources = Text{Name: "the discovery document", Bytes: 4 * mib, Values: 50_000, Depth: 20, Weight: 200}
	// ExtensionOpenAPI is an OpenAPI document of an extension, v2 or v3.
	ExtensionOpenAPI = Text{Name: "the OpenAPI document", Bytes: 8 * mib, Values: 200_000, Depth: 100, Weight: 350}
	// Token is a bearer token. A JWT is decoded before its signature is verified.
	Token = Text{Name: "the bearer token", Bytes: 64 * kib}
	// PluginAnswer is what a KMS plugin returns.
	PluginAnswer = Text{Name: "the response of the KMS plugin", Bytes: 128 * kib}
)

// All returns all texts.
func All() []Text {
	return []Text{Body, Selector, Query, Path, Header, Token, AdmissionAnswer, ConversionAnswer, DecisionAnswer, ReviewAnswer, IssuerAnswer,
		ServiceAnswer, ExtensionResources, ExtensionOpenAPI, PluginAnswer}
}

// Converted returns the bound of the response to a conversion of objects with so many bytes and
// values: an object may grow fourfold.
func Converted(bytes int64, values int) Text {
	t := ConversionAnswer
	t.Bytes = min(t.Bytes, growth*bytes+mib)
	t.Values = min(t.Values, growth*values+10_000)
	return t
}

// growth is how many times larger an object may become when it is converted.
const growth = 4

// Values returns the number of values of a JSON text that this process has written.
func Values(text []byte) int {
	values, _ := scan(text, len(text)+1, 0)
	return values
}
