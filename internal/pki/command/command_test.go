package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smallstep/certificates/cas/apiv1"
)

func TestWrongCalls(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	target := filepath.Join(dir, "pki")
	for want, args := range map[string][]string{
		"missing command":                    nil,
		`unknown command "make"`:             {"make"},
		"unknown flag: --size":               {"init", "--size=4"},
		"init takes 0 arguments, not 1":      {"init", "here"},
		"issue takes 1 arguments, not 0":     {"issue"},
		"--server: \"http://a\"":             {"init", "--server=http://a"},
		"--workers-server: \"nowhere\"":      {"init", "--workers-server=nowhere"},
		"--frontdoor-hosts: \"../x\"":        {"init", "--frontdoor-hosts=../x"},
		"--nats-servers: \"a/b\"":            {"init", "--nats-servers=a/b"},
		`"store" is the name of two folders`: {"init", "--etcd-members=store"},
		`"same" is the name of two folders`:  {"init", "--etcd-members=same", "--nats-servers=same"},
		`"authorities" is the name`:          {"init", "--nats-servers=authorities"},
		"--validity: 1s is less":             {"init", "--validity=1s"},
		"--authority-validity: 2h0m0s":       {"init", "--validity=3h", "--authority-validity=2h"},
		"--cas: open":                        {"init", "--cas=" + dir + "/none"},
		"--cas: invalid character":           {"init", "--cas=" + file("garbage", "garbage")},
		`no authority is called "moon"`:      {"init", "--cas=" + file("moon", `{"moon":{"type":"stepcas"}}`)},
		`"signing" is csr-signer's own`:      {"init", "--cas=" + file("signing", `{"signing":{"type":"stepcas"}}`)},
		"unsupported cas type nocas":         {"init", "--cas=" + file("unknown", `{"peers":{"type":"nocas"}}`)},
		`"peers" has no type`:                {"init", "--cas=" + file("untyped", `{"peers":{"type":"softcas"}}`)},
	} {
		var out, errs bytes.Buffer
		if len(args) > 0 {
			args = append(args, "--dir="+target)
		}
		if status := Main(args, &out, &errs); status != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d, %s, want 2 and %q", args, status, errs.String(), want)
		}
	}
	var out, errs bytes.Buffer
	apiv1.Register(apiv1.StepCAS, func(context.Context, apiv1.Options) (apiv1.CertificateAuthorityService, error) {
		return nil, errors.New("connection refused")
	})
	remote := file("remote", `{"etcd":{"type":"stepcas","certificateAuthority":"https://127.0.0.1:1"}}`)
	if status := Main([]string{"init", "--dir=" + target, "--cas=" + remote}, &out, &errs); status != 1 || !strings.Contains(errs.String(), "authority etcd: connection refused") {
		t.Errorf("an unavailable authority: status %d, %s", status, errs.String())
	}
	left, err := filepath.Glob(filepath.Join(dir, "*pki*"))
	if err != nil || len(left) > 0 {
		t.Errorf("failed commands have left %q, %v", left, err)
	}
	if status := Main([]string{"renew", "--dir=" + target}, &out, &errs); status != 1 {
		t.Errorf("renewing a missing folder: status %d", status)
	}
}

func TestCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "pki")
	for _, step := range []struct {
		line   string
		status int
		want   string
	}{
		{"init --validity=720h", 0, "created "},
		{"inspect", 0, "frontdoor/serving.crt"},
		{"inspect --days=31", 1, ""},
		{"renew --days=10", 0, "nothing expires within 10 days"},
		{"renew --days=31", 0, "renewed store/peer.crt until "},
		{"issue store", 1, ""},
		{"issue store --replace", 0, "created "},
		{"renew --days=4000", 1, ""},
		{"init --help", 0, "--authority-validity"},
		{"--help", 0, "portico pki renew"},
	} {
		var out, errs bytes.Buffer
		args := strings.Fields(step.line)
		if args[0] != "--help" {
			args = append(args, "--dir="+dir)
		}
		if status := Main(args, &out, &errs); status != step.status || !strings.Contains(out.String(), step.want) {
			t.Errorf("%s: status %d: %s%s", step.line, status, out.String(), errs.String())
		}
	}
}
