package main

import (
	"bytes"
	"fmt"

	"github.com/portico-platform/portico/internal/load"
)

// The paths of the objects. Pods that are read are in another namespace than those that
// are written, so that lists have a fixed length.
const (
	pods          = "/api/v1/namespaces/default/pods"
	changes       = "/api/v1/namespaces/default/configmaps"
	namespaces    = "/api/v1/namespaces"
	written       = "writes" // a namespace
	writtenPods   = "/api/v1/namespaces/writes/pods"
	writtenMaps   = "/api/v1/namespaces/writes/configmaps"
	writtenApps   = "/apis/apps/v1/namespaces/writes/deployments"
	mark, digits  = "tick-", 10
	neverNumbered = load.Note
)

// numbered is a body with a number that is changed in place, so that requests need no new
// body.
type numbered struct {
	text []byte
	at   int
}

func number(text []byte) (numbered, error) {
	at := bytes.Index(text, []byte(mark+"0"))
	if at < 0 || len(text) < at+len(neverNumbered) {
		return numbered{}, fmt.Errorf("no %s in %.200s", neverNumbered, text)
	}
	return numbered{text, at + len(mark)}, nil
}

// set writes the number into the body and returns the body.
func (b numbered) set(n int64) []byte {
	for i := digits - 1; i >= 0; i-- {
		b.text[b.at+i] = byte('0' + n%10)
		n /= 10
	}
	return b.text
}
