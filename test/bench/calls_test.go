package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCalls: the counts of all codes of a method are added, and other metrics are not read.
func TestCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE portico_rpc_server_seconds histogram
portico_rpc_server_seconds_bucket{code="OK",method="/portico.v1.Store/Get",le="0.0001"} 7
portico_rpc_server_seconds_count{code="OK",method="/portico.v1.Store/Get"} 1.2e+06
portico_rpc_server_seconds_count{code="NotFound",method="/portico.v1.Store/Get"} 3
portico_rpc_server_seconds_count{code="OK",method="/grpc.health.v1.Health/Check"} 9
`))
	}))
	defer server.Close()
	if got := calls(strings.TrimPrefix(server.URL, "http://")); !maps.Equal(got, map[string]int64{"Store/Get": 1_200_003}) {
		t.Errorf("got %v", got)
	}
	if got := calls("127.0.0.1:1"); len(got) != 0 {
		t.Errorf("without a server: %v", got)
	}
}
