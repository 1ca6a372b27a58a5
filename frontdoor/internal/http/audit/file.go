package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/portico-platform/portico/services/kit/auditchain"
	"github.com/portico-platform/portico/services/kit/run"
)

// fileSettings are the flags of the log file.
type fileSettings struct {
	path                        string
	maxAge, maxBackups, maxSize int
	compress                    bool
	format                      string
	chain                       bool
	chainKey                    string
	delivery
}

func (s *fileSettings) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.path, "audit-log-path", "", "file for the audit log, one line of JSON per request; - for standard output, empty for none")
	fs.IntVar(&s.maxSize, "audit-log-maxsize", 0, "size of the audit log in megabytes at which it is rotated; 0 for 100 if another --audit-log-max flag or --audit-log-compress is set, else no limit")
	fs.IntVar(&s.maxAge, "audit-log-maxage", 0, "days to keep old files of the audit log; 0 for no limit")
	fs.IntVar(&s.maxBackups, "audit-log-maxbackup", 0, "number of old files of the audit log to keep; 0 for no limit")
	fs.BoolVar(&s.compress, "audit-log-compress", false, "compress old files of the audit log with gzip")
	fs.StringVar(&s.format, "audit-log-format", "json", "format of the audit log: json, or legacy for lines of text")
	fs.BoolVar(&s.chain, "audit-log-chain", true, "end each line of an audit log file of format json with a hash of it and all previous lines, for portico audit verify")
	fs.StringVar(&s.chainKey, "audit-log-chain-key-file", "", "`file` with a key of at least 32 bytes for the hashes of --audit-log-chain")
	s.delivery.register(fs, filePrefix, modeBlocking)
}

// check returns an error that names the invalid flag.
func (s *fileSettings) check() error {
	for flag, value := range map[string]int{"maxsize": s.maxSize, "maxage": s.maxAge, "maxbackup": s.maxBackups} {
		if value < 0 {
			return run.Usagef("--audit-log-%s: %d is negative", flag, value)
		}
	}
	switch {
	case s.chainKey != "" && !s.chains():
		return run.Usagef("--audit-log-chain-key-file: requires --audit-log-path, --audit-log-chain and format json")
	case s.format != "json" && s.format != "legacy":
		return run.Usagef("--audit-log-format: %q is neither json nor legacy", s.format)
	}
	return nil
}

// open opens the file, which rotates if a flag says so.
func (s *fileSettings) open() (io.WriteCloser, error) {
	if s.path == "-" {
		return standard{os.Stdout}, nil
	}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if s.maxSize+s.maxAge+s.maxBackups == 0 && !s.compress {
		return &lines{WriteCloser: file}, nil
	}
	_ = file.Close() // it can be written
	return &lines{WriteCloser: &lumberjack.Logger{Filename: s.path, MaxSize: s.maxSize, MaxAge: s.maxAge, MaxBackups: s.maxBackups, Compress: s.compress}}, nil
}

// lines is a file of lines. A disk that becomes full ends a line in the middle; the next one that can
// be written is a line of its own. Not for concurrent use.
type lines struct {
	io.WriteCloser
	torn bool
}

// Write writes one line with its end.
func (l *lines) Write(line []byte) (int, error) {
	if l.torn {
		if _, err := l.WriteCloser.Write([]byte("\n")); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.WriteCloser.Write(line)
	l.torn = err != nil && n > 0
	return n, err
}

// chains reports whether the log is a file whose lines are a chain.
func (s *fileSettings) chains() bool {
	return s.chain && s.path != "" && s.path != "-" && s.format == "json"
}

// chained is a file whose lines are a chain.
type chained struct {
	io.WriteCloser
	head *auditchain.Head
}

// chained continues the chain of the file.
func (s *fileSettings) chained(file io.WriteCloser, metrics *prometheus.Registry) (io.WriteCloser, error) {
	var key auditchain.Key
	if s.chainKey != "" {
		content, err := os.ReadFile(s.chainKey)
		if err != nil {
			return nil, run.Usagef("--audit-log-chain-key-file: %v", err)
		}
		if key, err = auditchain.ParseKey(content); err != nil {
			return nil, run.Usagef("--audit-log-chain-key-file: %s: %v", s.chainKey, err)
		}
	}
	head, err := auditchain.Open(s.path, key)
	if err != nil {
		return nil, run.Usagef("--audit-log-path: %v", err)
	}
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_audit_chain_lines",
		Help: "Number of the last line of the audit log."}, func() float64 { return float64(head.Link().N) }))
	return chained{file, head}, nil
}

// Write writes one line.
func (c chained) Write(line []byte) (int, error) {
	err := c.head.Chain(bytes.TrimSuffix(line, []byte("\n")), func(linked []byte) error {
		_, err := c.WriteCloser.Write(append(linked, '\n'))
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(line), nil
}

func (c chained) Close() error { return errors.Join(c.WriteCloser.Close(), c.head.Close()) }

// standard is standard output, which stays open.
type standard struct{ io.Writer }

func (standard) Close() error { return nil }

// output opens the file as an output of the log.
func (s *fileSettings) openOutput(n *run.Node, failed *losses) (output, error) {
	file, err := s.open()
	if err != nil {
		return output{}, run.Usagef("--audit-log-path: %v", err)
	}
	if s.chains() {
		if file, err = s.chained(file, n.Metrics); err != nil {
			return output{}, err
		}
	}
	file = noted{file, failed}
	n.OnStop(func(context.Context) { _ = file.Close() })
	to := s.delivery.output(n, "writing the audit log", failed, writer(file))
	to.legacy = s.format == "legacy"
	return to, nil
}

// writer returns the delivery to a file, by one request at a time.
func writer(w io.Writer) deliverFunc {
	var mu sync.Mutex
	return func(_ context.Context, _ <-chan struct{}, batch [][]byte) int {
		mu.Lock()
		defer mu.Unlock()
		return writeAll(w, batch)
	}
}

// writeAll writes each line by itself, because rotated files are bounded, and returns how many
// were written.
func writeAll(w io.Writer, batch [][]byte) (written int) {
	for _, line := range batch {
		if _, err := fmt.Fprintf(w, "%s\n", line); err == nil {
			written++
		}
	}
	return written
}
