package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/portico-platform/portico/services/kit/run/build"
	"github.com/portico-platform/portico/services/release"
)

const (
	// behind is how many revisions a hub or a store may be behind the newest one that was
	// seen a moment before.
	behind = 1_000
	// lagPause is the time between two checks of a lag.
	lagPause = 2 * time.Second
)

// page is what one process shows on its status port.
type page struct {
	address string
	metrics map[string]*dto.MetricFamily
}

// values returns the values of a metric by the value of one of its labels.
func (p page) values(name, label string) map[string]float64 {
	found := map[string]float64{}
	for _, m := range p.metrics[name].GetMetric() {
		found[labelOf(m, label)] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return found
}

// value returns the value of a metric, and whether the process has it.
func (p page) value(name string) (float64, bool) {
	if p.metrics[name] == nil {
		return 0, false
	}
	return p.values(name, "")[""], true
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// processes examines all processes of the suite by their status ports.
func (e *examination) processes(ctx context.Context, addresses []string) {
	var pages []page
	for _, address := range addresses {
		if p, ok := e.process(ctx, address); ok {
			pages = append(pages, p)
		}
	}
	e.skew(pages)
	for _, p := range pages {
		e.ends(p)
		e.peers(p)
		e.storage(p)
		e.refusals(p)
		e.hidden(p)
	}
	e.publishers(pages)
	e.overrides(pages)
	e.lag(ctx, pages)
}

// process reads the pages of one process.
func (e *examination) process(ctx context.Context, address string) (page, bool) {
	client := &http.Client{Timeout: timeout}
	before := e.now()
	code, body, header, err := fetch(ctx, client, "http://"+address+"/readyz?verbose")
	if err != nil {
		e.bad(Finding{Fail, "process", address, err.Error(), "check that the process runs with this --status-address"})
		return page{}, false
	}
	e.clock(address, header, before, e.now())
	if code == http.StatusOK {
		e.ok("process", address, "ready")
		e.parts(address, body)
	} else {
		e.bad(Finding{Fail, "process", address, "not ready: " + failedChecks(body), "its log has the reason of the failed check"})
	}
	p, err := scrape(ctx, client, address)
	if err != nil {
		e.bad(Finding{Fail, "process", address, "its metrics: " + err.Error(), "check that the address is that of a process of the suite"})
	}
	return p, err == nil
}

func scrape(ctx context.Context, client *http.Client, address string) (page, error) {
	code, body, _, err := fetch(ctx, client, "http://"+address+"/metrics")
	if err != nil || code != http.StatusOK {
		return page{}, fmt.Errorf("answered with %d, %w", code, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	return page{address, families}, err
}

// skew compares the builds and vocabularies of processes.
func (e *examination) skew(pages []page) {
	for _, s := range []struct {
		label, advice string
		status        Status
	}{
		{"version", "complete the upgrade, or roll back; docs/operations/upgrade.md", Warn},
		{"contracts", "the releases differ: complete the upgrade, or roll back", Warn},
		{"vocabulary", "give all processes the --vocabulary with which the data was created", Fail},
	} {
		e.compare(s.label, s.status, s.advice, pages)
	}
	status, advice := emulated(pages)
	e.compare("emulated", status, advice, pages)
}

// compare checks one label of all processes.
func (e *examination) compare(label string, status Status, advice string, pages []page) {
	by := map[string][]string{}
	for _, p := range pages {
		for value := range p.values(build.Metric, label) {
			by[value] = append(by[value], p.address)
		}
	}
	var found []string
	for _, value := range slices.Sorted(maps.Keys(by)) {
		found = append(found, fmt.Sprintf("%s (%s)", value, strings.Join(by[value], ", ")))
	}
	switch {
	case len(by) > 1:
		e.bad(Finding{status, "skew", label, strings.Join(found, "; "), advice})
	case len(by) == 1:
		e.ok("skew", label, "all have %s", slices.Collect(maps.Keys(by))[0])
	}
}

// emulated judges emulated versions that differ. No front door may have a later one than another
// service: policies of that version would be accepted and not enforced.
func emulated(pages []page) (Status, string) {
	newest, oldest := release.Release{}, release.V136
	for _, p := range pages {
		for value := range p.values(build.Metric, "emulated") {
			r, err := release.Of(value)
			switch _, door := p.metrics["apiserver_current_inflight_requests"]; {
			case err != nil:
			case door && newest.Before(r):
				newest = r
			case !door && r.Before(oldest):
				oldest = r
			}
		}
	}
	if oldest.Before(newest) {
		return Fail, "a front door has a later --emulated-version than another service, which does not enforce policies of that version: update front doors last, and roll them back first"
	}
	return Warn, "the suite is rolling to another --emulated-version: complete it, or roll back; docs/operations/emulated-version.md"
}

// ends checks the certificates that a process uses.
func (e *examination) ends(p page) {
	good := 0
	for file, end := range p.values("portico_certificate_expiration_timestamp_seconds", "file") {
		at := time.Unix(int64(end), 0)
		f := Finding{Warn, "certificates", p.address, fmt.Sprintf("%s expires at %s", file, at.UTC().Format(time.RFC3339)),
			"portico pki renew, and copy the folder; see docs/operations/certificates.md for when files are read again"}
		switch left := at.Sub(e.now()); {
		case left <= 0:
			f.Status, f.Found = Fail, fmt.Sprintf("%s expired at %s", file, at.UTC().Format(time.RFC3339))
			e.bad(f)
		case left < soon:
			e.bad(f)
		default:
			good++
		}
	}
	if good > 0 {
		e.ok("certificates", p.address, "%d files are valid for more than %d days", good, int(soon.Hours()/24))
	}
}

// peers checks the calls of a process to others.
func (e *examination) peers(p page) {
	for peer, up := range p.values("portico_peer_up", "peer") {
		if up == 0 {
			e.bad(Finding{Fail, "peers", p.address, peer + " cannot be reached", "check that it runs, that its name resolves, and that both certificates are valid"})
		} else {
			e.ok("peers", p.address, "%s is reached", peer)
		}
	}
}

// storage checks the metrics of a process about etcd.
func (e *examination) storage(p page) {
	for name, up := range p.values("portico_store_etcd_up", "etcd") {
		if up == 0 {
			e.bad(Finding{Fail, "etcd", p.address, "etcd " + name + " does not respond to the store", "check that a majority of its members run and reach each other"})
		}
	}
	for name, objects := range p.values("portico_store_misplaced_objects", "etcd") {
		if objects > 0 {
			e.bad(Finding{Warn, "etcd", p.address, fmt.Sprintf("%.0f objects in etcd %s are not served: --etcd-servers-overrides assigns their type to another etcd", objects, name),
				"see docs/storage.md"})
		}
	}
	for name, alarms := range p.values("portico_store_etcd_alarms", "etcd") {
		if alarms > 0 {
			e.bad(Finding{Fail, "etcd", p.address, "etcd " + name + " has raised an alarm: writes are refused", "free space: docs/storage.md"})
		}
	}
	if quota, _ := p.value("portico_etcd_quota_bytes"); quota > 0 {
		used, _ := p.value("portico_etcd_database_used_bytes")
		e.room(p.address, used/quota, "delete objects, or raise --quota-backend-bytes")
	}
}

// room judges how full a database is.
func (e *examination) room(subject string, share float64, advice string) {
	f := Finding{Warn, "etcd", subject, fmt.Sprintf("the database uses %.0f %% of its quota", share*100), advice}
	switch {
	case share > 0.95:
		f.Status = Fail
		e.bad(f)
	case share > 0.8:
		e.bad(f)
	default:
		e.ok("etcd", subject, "the database uses %.0f %% of its quota", share*100)
	}
}

// refusals checks what a process has refused.
func (e *examination) refusals(p page) {
	if alarm, has := p.value("portico_changes_alarm"); has && alarm > 0 {
		e.bad(Finding{Fail, "nats", p.address, "messages that the watch hub did not sign were rejected in the last minutes",
			"a NATS user may publish, but should not: compare the users with deploy/nats/permissions.conf"})
	}
	for _, m := range p.metrics["portico_rpc_server_seconds"].GetMetric() {
		if n := m.GetHistogram().GetSampleCount(); labelOf(m, "code") == "PermissionDenied" && n > 0 {
			e.bad(Finding{Warn, "calls", p.address, fmt.Sprintf("%d calls of %s were refused since its start", n, labelOf(m, "method")),
				`the log line "call refused" names the caller, which has a wrong or stolen certificate`})
		}
	}
}

// publishers finds the hub that publishes.
func (e *examination) publishers(pages []page) {
	hubs, publish := 0, []string{}
	for _, p := range pages {
		if value, has := p.value("portico_watchhub_publishes"); has {
			hubs++
			if value > 0 {
				publish = append(publish, p.address)
			}
		}
	}
	switch {
	case hubs == 0:
	case len(publish) == 0:
		e.bad(Finding{Fail, "publisher", "watch-hub", fmt.Sprintf("none of %d hubs publishes changes: watches get no events", hubs), "check that the hubs reach NATS and etcd, which has the publisher's lease"})
	case len(publish) > 1:
		e.bad(Finding{Warn, "publisher", "watch-hub", strings.Join(publish, " and ") + " publish", "run the doctor again; if this persists, one of them has lost its connection to etcd"})
	default:
		e.ok("publisher", publish[0], "publishes changes")
	}
}

// revisions are the metrics with the revisions of hubs and stores, by etcd.
var revisions = []string{"portico_watchhub_revision", "portico_store_mirror_revision"}

// overrides compares which etcds hubs and stores use.
func (e *examination) overrides(pages []page) {
	by := map[string][]string{}
	for _, p := range pages {
		for _, name := range revisions {
			if names := p.values(name, "etcd"); len(names) > 0 {
				used := cmp.Or(strings.Join(slices.Sorted(maps.Keys(names)), ", "), "main") // earlier releases do not name the only one
				by[used] = append(by[used], p.address)
			}
		}
	}
	var found []string
	for _, used := range slices.Sorted(maps.Keys(by)) {
		found = append(found, fmt.Sprintf("%s (%s)", used, strings.Join(slices.Compact(by[used]), ", ")))
	}
	if len(by) > 1 {
		e.bad(Finding{Fail, "skew", "overrides", strings.Join(found, "; "), "give stores and watch hubs the same --etcd-servers-overrides: watches of these resources are broken"})
	}
}

// lag compares the revisions of hubs and stores of each etcd. What seems to lag has a second chance: the
// pages are not of one moment.
func (e *examination) lag(ctx context.Context, pages []page) {
	newest := map[string]float64{}
	for _, p := range pages {
		for _, metric := range revisions {
			for etcd, value := range p.values(metric, "etcd") {
				newest[etcd] = max(newest[etcd], value)
			}
		}
	}
	for _, p := range pages {
		for _, metric := range revisions {
			for etcd, value := range p.values(metric, "etcd") {
				if newest[etcd]-value > behind {
					value = later(ctx, p.address, metric, etcd, value)
				}
				name := strings.TrimSpace(metric + " " + etcd)
				if newest[etcd]-value > behind {
					e.bad(Finding{Warn, "lag", p.address, fmt.Sprintf("%s is %.0f behind", name, newest[etcd]-value), "check its CPU and memory, etcd, and the rate of writes"})
				} else {
					e.ok("lag", p.address, "%s is up to date", name)
				}
			}
		}
	}
}

// later returns the value of a metric of one etcd a moment later.
func later(ctx context.Context, address, name, etcd string, value float64) float64 {
	select {
	case <-time.After(lagPause):
	case <-ctx.Done():
	}
	if p, err := scrape(ctx, &http.Client{Timeout: timeout}, address); err == nil {
		value = p.values(name, "etcd")[etcd]
	}
	return value
}

// hidden finds stored objects whose types the emulated release does not have.
func (e *examination) hidden(p page) {
	if objects, _ := p.value("portico_hidden_objects"); objects > 0 {
		e.bad(Finding{Warn, "emulated", p.address, fmt.Sprintf("%.0f stored objects are of types that the emulated release lacks", objects),
			"the log of the front door lists the types; use an --emulated-version that has them, or delete the objects with it"})
	}
}
