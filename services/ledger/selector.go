package ledger

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// CheckSelector returns an ExcessError for a selector in the syntax of the API that must not be parsed.
func CheckSelector(text string) error {
	switch {
	case int64(len(text)) > Selector.Bytes:
		return &ExcessError{Selector, bytesOf, Selector.Bytes}
	case strings.Count(text, ",") >= Selector.Values:
		return &ExcessError{Selector, valuesOf, int64(Selector.Values)}
	}
	return nil
}

// SelectorWeight returns what a parsed selector takes, in bytes.
func SelectorWeight(text string) int64 {
	if text == "" {
		return 0
	}
	return int64(len(text)) + Selector.Weight*int64(1+strings.Count(text, ","))
}

// ParseLabels parses a label selector. The error is an ExcessError for one that is too large.
func ParseLabels(text string) (labels.Selector, error) {
	if err := CheckSelector(text); err != nil {
		return nil, err
	}
	return labels.Parse(text)
}

// ParseFields parses a field selector. The error is an ExcessError for one that is too large.
func ParseFields(text string) (fields.Selector, error) {
	if err := CheckSelector(text); err != nil {
		return nil, err
	}
	return fields.ParseSelector(text)
}

// CheckTerms returns an ExcessError for a selector with so many requirements and values.
func CheckTerms(n int) error {
	if n > Selector.Values {
		return &ExcessError{Selector, valuesOf, int64(Selector.Values)}
	}
	return nil
}
