package test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// suite are the processes of a suite that is well, in the namespace a.
const suite = `
portico_build_info{namespace="a",job="frontdoor",instance="f",version="1",contracts="1",vocabulary="k8s"} 1x60
portico_build_info{namespace="a",job="store",instance="s",version="1",contracts="1",vocabulary="k8s"} 1x60
up{namespace="a",job="frontdoor",instance="f"} 1x60
up{namespace="a",job="authn",instance="n"} 1x60
up{namespace="a",job="authz",instance="z"} 1x60
up{namespace="a",job="admission",instance="m"} 1x60
up{namespace="a",job="store",instance="s"} 1x60
up{namespace="a",job="watch-hub",instance="h"} 1x60
portico_peer_up{namespace="a",job="frontdoor",instance="f",peer="store"} 1x60
portico_watchhub_publishes{namespace="a",job="watch-hub",instance="h"} 1x60
portico_watchhub_publishes{namespace="a",job="watch-hub",instance="h2"} 0x60
portico_watchhub_revision{namespace="a",job="watch-hub",instance="h",etcd="main"} 5000000x60
portico_watchhub_revision{namespace="a",job="watch-hub",instance="h",etcd="events"} 40000x60
portico_store_mirror_revision{namespace="a",job="store",instance="s",etcd="main"} 5000000x60
portico_store_mirror_revision{namespace="a",job="store",instance="s",etcd="events"} 40000x60
portico_store_mirror_loads{namespace="a",job="store",instance="s",etcd="main"} 1x60
portico_store_etcd_up{namespace="a",job="store",instance="s",etcd="main"} 1x60
portico_store_etcd_alarms{namespace="a",job="store",instance="s",etcd="main"} 0x60
portico_store_etcd_request_duration_seconds_bucket{namespace="a",job="store",instance="s",le="0.1"} 0+100x60
portico_store_etcd_request_duration_seconds_bucket{namespace="a",job="store",instance="s",le="+Inf"} 0+100x60
portico_etcd_database_used_bytes{namespace="a",job="portico",instance="p"} 10x60
portico_etcd_quota_bytes{namespace="a",job="portico",instance="p"} 100x60
portico_etcd_disk_free_bytes{namespace="a",job="portico",instance="p"} 5e9x60
etcd_mvcc_db_total_size_in_bytes{namespace="a",job="etcd",instance="e"} 40x60
etcd_server_quota_backend_bytes{namespace="a",job="etcd",instance="e"} 100x60
portico_store_mirror_bytes{namespace="a",job="store",instance="s",etcd="main"} 20x60
portico_store_mirror_bytes{namespace="a",job="store",instance="s",etcd="events"} 10x60
portico_memory_limit_bytes{namespace="a",job="store",instance="s"} 100x60
portico_changes_alarm{namespace="a",job="frontdoor",instance="f"} 0x60
portico_certificate_expiration_timestamp_seconds{namespace="a",job="store",instance="s",file="c"} 1e10x60
portico_rpc_server_seconds_count{namespace="a",job="store",instance="s",method="/x",code="OK"} 0+100x60
portico_rpc_server_seconds_count{namespace="a",job="store",instance="s",method="/x",code="PermissionDenied"} 3x60
process_start_time_seconds{namespace="a",job="store",instance="s"} 1000x60
apiserver_request_total{namespace="a",job="frontdoor",instance="f",code="200"} 0+1000x60
apiserver_request_total{namespace="a",job="frontdoor",instance="f",code="503"} 0+1x60
apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="get",le="0.1"} 0+100x60
apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="get",le="+Inf"} 0+100x60
apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="create",le="0.1"} 0+100x60
apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="create",le="+Inf"} 0+100x60
apiserver_dropped_requests_total{namespace="a",job="frontdoor",instance="f",request_kind="mutating"} 5x60
`

// beside are another suite, of another release, and the API server of the host, which has troubles.
const beside = `
portico_build_info{namespace="b",job="portico",instance="b",version="2",contracts="2",vocabulary="platform"} 1x60
up{namespace="b",job="portico",instance="b"} 1x60
portico_watchhub_publishes{namespace="b",job="portico",instance="b"} 1x60
portico_watchhub_revision{namespace="b",job="portico",instance="b",etcd="main"} 70x60
portico_store_mirror_revision{namespace="b",job="portico",instance="b",etcd="main"} 70x60
up{job="apiserver",instance="k"} 0x60
etcd_mvcc_db_total_size_in_bytes{namespace="kube-system",job="etcd",instance="k"} 99x60
etcd_server_quota_backend_bytes{namespace="kube-system",job="etcd",instance="k"} 100x60
apiserver_request_total{job="apiserver",instance="k",code="503"} 0+9000x60
apiserver_request_duration_seconds_bucket{job="apiserver",instance="k",verb="get",le="10"} 0+100x60
apiserver_request_duration_seconds_bucket{job="apiserver",instance="k",verb="create",le="10"} 0+100x60
apiserver_dropped_requests_total{job="apiserver",instance="k",request_kind="mutating"} 0+9x60
apiserver_requested_deprecated_apis{job="apiserver",instance="k",group="g",version="v",resource="r"} 1x60
`

// faults has for each alert what it is about: a line without a value takes the series away whose
// lines begin with it, and others replace theirs.
var faults = map[string]string{
	"PorticoProcessDown":        `up{namespace="a",job="store",instance="s"} 0x60`,
	"PorticoRestarting":         `process_start_time_seconds{namespace="a",job="store",instance="s"} 1000+60x60`,
	"PorticoPeerAway":           `portico_peer_up{namespace="a",job="frontdoor",instance="f",peer="store"} 0x60`,
	"PorticoServiceMissing":     `up{namespace="a",job="admission"`,
	"PorticoVersionSkew":        `portico_build_info{namespace="a",job="admission",instance="m",version="2",contracts="1",vocabulary="k8s"} 1x60`,
	"PorticoVocabularySkew":     `portico_build_info{namespace="a",job="admission",instance="m",version="1",contracts="1",vocabulary="platform"} 1x60`,
	"PorticoErrors":             `apiserver_request_total{namespace="a",job="frontdoor",instance="f",code="503"} 0+20x60`,
	"PorticoSlowWrites":         `apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="create",le="0.1"} 0+10x60` + "\n" + `apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="create",le="10"} 0+100x60`,
	"PorticoSlowReads":          `apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="get",le="0.1"} 0+10x60` + "\n" + `apiserver_request_duration_seconds_bucket{namespace="a",job="frontdoor",instance="f",verb="get",le="10"} 0+100x60`,
	"PorticoRequestsDropped":    `apiserver_dropped_requests_total{namespace="a",job="frontdoor",instance="f",request_kind="mutating"} 0+1x60`,
	"PorticoAuditEventsDropped": `apiserver_audit_error_total{namespace="a",job="frontdoor",instance="f",plugin="log"} 0+1x60`,
	"PorticoDeprecatedAPIs":     `apiserver_requested_deprecated_apis{namespace="a",job="frontdoor",instance="f",group="g",version="v",resource="r"} 1x60`,
	"PorticoEtcdAway":           `portico_store_etcd_up{namespace="a",job="store",instance="s",etcd="main"} 0x60`,
	"PorticoEtcdAlarm":          `portico_store_etcd_alarms{namespace="a",job="store",instance="s",etcd="main"} 1x60`,
	"PorticoUnreadableObjects":  `portico_store_unreadable_objects{namespace="a",job="store",instance="s",etcd="main",group="",resource="secrets"} 1x60`,
	"PorticoEtcdSlow":           `portico_store_etcd_request_duration_seconds_bucket{namespace="a",job="store",instance="s",le="0.1"} 0+10x60` + "\n" + `portico_store_etcd_request_duration_seconds_bucket{namespace="a",job="store",instance="s",le="10"} 0+100x60`,
	"PorticoDatabaseFillingUp":  `portico_etcd_database_used_bytes{namespace="a",job="portico",instance="p"} 81x60`,
	"PorticoEtcdFillingUp":      `etcd_mvcc_db_total_size_in_bytes{namespace="a",job="etcd",instance="e"} 81x60`,
	"PorticoMirrorLarge":        `portico_store_mirror_bytes{namespace="a",job="store",instance="s",etcd="events"} 16x60`,
	"PorticoDiskFillingUp":      `portico_etcd_disk_free_bytes{namespace="a",job="portico",instance="p"} 1e9x60`,
	"PorticoStoreReloads":       `portico_store_mirror_loads{namespace="a",job="store",instance="s",etcd="main"} 0+1x60`,
	"PorticoNoPublisher":        `portico_watchhub_publishes{namespace="a",job="watch-hub",instance="h"} 0x60`,
	"PorticoNoPublisher no hub": `portico_watchhub_publishes{namespace="a"`,
	"PorticoTwoPublishers":      `portico_watchhub_publishes{namespace="a",job="watch-hub",instance="h2"} 1x60`,
	"PorticoHubLags":            `portico_watchhub_revision{namespace="a",job="watch-hub",instance="h",etcd="events"} 38000x60`,
	"PorticoStoreLags":          `portico_store_mirror_revision{namespace="a",job="store",instance="s",etcd="main"} 4990000x60`,
	"PorticoForgedChanges":      `portico_changes_alarm{namespace="a",job="frontdoor",instance="f"} 1x60`,
	"PorticoCertificateExpires": `portico_certificate_expiration_timestamp_seconds{namespace="a",job="store",instance="s",file="c"} 1000000x60`,
	"PorticoCertificateExpired": `portico_certificate_expiration_timestamp_seconds{namespace="a",job="store",instance="s",file="c"} 10x60`,
	"PorticoCallsRefused":       `portico_rpc_server_seconds_count{namespace="a",job="store",instance="s",method="/x",code="PermissionDenied"} 3x50 4x10`,
	"PorticoCallsRefused once":  `portico_rpc_server_seconds_count{namespace="a",job="store",instance="s",method="/y",code="PermissionDenied"} _x55 1x5`,
}

// with returns series in which those of a fault replace others.
func with(series, fault string) string {
	var lines []string
	for line := range strings.Lines(series) {
		replaced := strings.TrimSpace(line) == ""
		for change := range strings.Lines(fault) {
			name, _, _ := strings.Cut(strings.TrimSpace(change), "} ")
			replaced = replaced || strings.HasPrefix(line, name)
		}
		if !replaced {
			lines = append(lines, line)
		}
	}
	for change := range strings.Lines(fault) {
		if strings.Contains(change, "}") {
			lines = append(lines, strings.TrimSpace(change)+"\n")
		}
	}
	return "load 1m\n  " + strings.ReplaceAll(strings.TrimSpace(strings.Join(lines, "")), "\n", "\n  ")
}

// TestFiring evaluates every alert with the faults that it is about, where it must hold, and beside
// a suite that is well, where none may, whatever else the Prometheus has.
func TestFiring(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../rules.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	exprs := map[string]string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			exprs[rule.Alert] = rule.Expr
			if faults[rule.Alert] == "" {
				t.Errorf("%s has no fault in this test", rule.Alert)
			}
		}
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	holds := func(series, expr string) bool {
		storage := promqltest.LoadedStorage(t, series)
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(0, 0).Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		defer query.Close()
		vector, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatal(err)
		}
		return len(vector) > 0
	}
	for alert, expr := range exprs {
		if holds(with(suite+beside, ""), expr) {
			t.Errorf("%s holds although all is well", alert)
		}
	}
	for fault, series := range faults {
		alert, _, _ := strings.Cut(fault, " ")
		if !holds(with(suite+beside, series), exprs[alert]) {
			t.Errorf("%s does not hold with %s", fault, series)
		}
	}
}
