package sdk

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongCalls(t *testing.T) {
	handler := func(context.Context, *Review) error { return nil }
	service := Service{Name: "s", Validate: handler, Flags: func(fs *flag.FlagSet) { fs.String("own", "", "") }}
	nothing := filepath.Join(t.TempDir(), "nothing")
	for want, x := range map[string]struct {
		service Service
		args    []string
	}{
		"not defined: -other":                      {service, []string{"--other"}},
		`unexpected argument "serve"`:              {service, []string{"--own=1", "serve"}},
		"Service.Name is empty":                    {Service{Validate: handler}, nil},
		"neither Mutate nor Validate":              {Service{Name: "s"}, nil},
		"--address and --review-address are both":  {service, []string{"--address="}},
		"--client-ca-file is required":             {service, []string{"--address=:9443"}},
		"--client-ca-file is required: --address ": {service, []string{"--address=0.0.0.0:9443"}},
		"must be used together":                    {service, []string{"--tls-cert-file=a"}},
		"--tls-cert-file or --cert-dir":            {service, []string{"--cert-dir="}},
		"no such file":                             {service, []string{"--tls-cert-file=" + nothing, "--tls-private-key-file=" + nothing}},
		"--max-request-bytes":                      {service, []string{"--max-request-bytes=0"}},
		"--max-in-flight":                          {service, []string{"--max-in-flight=0"}},
		"--timeout":                                {service, []string{"--timeout=-1s"}},
		"--drain-delay":                            {service, []string{"--drain-delay=-1s"}},
		"--allowed-callers has no effect":          {service, []string{"--allowed-callers=a"}},
	} {
		var errs bytes.Buffer
		if code := command(t.Context(), x.service, x.args, &errs); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit status %d: %s, want %q", x.args, code, errs.String(), want)
		}
	}
}

func TestHelp(t *testing.T) {
	var errs bytes.Buffer
	if code := command(t.Context(), Service{Name: "s"}, []string{"--help"}, &errs); code != 0 || !strings.Contains(errs.String(), "-client-ca-file") {
		t.Errorf("exit status %d: %s", code, errs.String())
	}
}

// TestCommand runs a service without a certificate of its own, until a signal.
func TestCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	ctx, cancel := context.WithCancel(t.Context())
	service := Service{Name: "s", Validate: func(context.Context, *Review) error { return nil }, Start: func(context.Context) error {
		cancel()
		return nil
	}}
	var errs bytes.Buffer
	if code := command(ctx, service, []string{"--address=127.0.0.1:0", "--cert-dir=" + dir}, &errs); code != 0 {
		t.Errorf("exit status %d: %s", code, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "tls.key")); err != nil {
		t.Error(err)
	}
	if code := command(t.Context(), service, []string{"--address=203.0.113.1:1", "--client-ca-file=" + filepath.Join(dir, "ca.crt"), "--cert-dir=" + dir}, &errs); code != 1 {
		t.Errorf("exit status %d for an address of another machine: %s", code, errs.String())
	}
}
