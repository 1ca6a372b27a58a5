package pki

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/portico-platform/portico/internal/pki/files"
	"github.com/portico-platform/portico/internal/plain"
)

// Inspection counts what Inspect has found.
type Inspection struct {
	Ending int // certificates that expire within the time
	Open   int // files that users other than their owner may read
	Wrong  int // files that do not belong to those beside them, or to their authority
}

// Inspect prints a row for each certificate in the folder, and a line for each finding: files that
// users other than their owner may read, certificates that are not for their key or not of
// their authority, and others that do not belong together.
func (p *PKI) Inspect(w io.Writer, within time.Duration) (found Inspection, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tNAME\tHOSTS\tSIGNED BY\tEXPIRES\tDAYS LEFT")
	var remarks []string
	wrong := map[string]bool{}
	add := func(file string, err error) {
		if err != nil && !wrong[file] {
			wrong[file] = true
			remarks = append(remarks, fmt.Sprintf("%s: %v", file, err))
		}
	}
	err = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files.Hidden(d.Name()) && d.IsDir() {
			return fs.SkipDir
		}
		if d.IsDir() || files.Hidden(d.Name()) {
			return nil
		}
		name, err := filepath.Rel(p.dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			found.Open++
			remarks = append(remarks, fmt.Sprintf("%s: mode %04o: only its owner should have access", name, info.Mode().Perm()))
		}
		if filepath.Ext(path) != ".crt" || strings.HasSuffix(path, "-ca.crt") {
			return nil // a copy of an authority, which has its own row
		}
		cert, err := p.readCertificate(filepath.ToSlash(name))
		if err != nil {
			add(filepath.ToSlash(name), err)
			return nil
		}
		left := cert.NotAfter.Sub(p.now())
		if left < within {
			found.Ending++
		}
		hosts := append([]string{}, cert.DNSNames...)
		for _, ip := range cert.IPAddresses {
			hosts = append(hosts, ip.String())
		}
		plain.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\n", name, cert.Subject, strings.Join(hosts, " "), cert.Issuer.CommonName,
			cert.NotAfter.UTC().Format(time.RFC3339), int(left/(24*time.Hour)))
		return nil
	})
	if err != nil {
		return found, err
	}
	if err := table.Flush(); err != nil {
		return found, err
	}
	p.check(add)
	found.Wrong = len(wrong)
	for _, remark := range remarks {
		plain.Fprintf(w, "%s\n", remark)
	}
	return found, nil
}
