package pki

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Inspect prints a row for each certificate in the folder, and a line for each file that
// users other than its owner may read. It returns the number of certificates that expire
// within a time, and the number of such files.
func (p *PKI) Inspect(w io.Writer, within time.Duration) (ending, open int, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tNAME\tHOSTS\tSIGNED BY\tEXPIRES\tDAYS LEFT")
	var remarks []string
	err = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
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
			open++
			remarks = append(remarks, fmt.Sprintf("%s: mode %04o: only its owner should have access", name, info.Mode().Perm()))
		}
		if filepath.Ext(path) != ".crt" || strings.HasSuffix(path, "-ca.crt") {
			return nil // a copy of an authority, which has its own row
		}
		cert, err := p.readCertificate(filepath.ToSlash(name))
		if err != nil {
			return err
		}
		left := cert.NotAfter.Sub(p.now())
		if left < within {
			ending++
		}
		hosts := append([]string{}, cert.DNSNames...)
		for _, ip := range cert.IPAddresses {
			hosts = append(hosts, ip.String())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\n", name, cert.Subject, strings.Join(hosts, " "), cert.Issuer.CommonName,
			cert.NotAfter.UTC().Format(time.RFC3339), int(left/(24*time.Hour)))
		return nil
	})
	if err != nil {
		return ending, open, err
	}
	if err := table.Flush(); err != nil {
		return ending, open, err
	}
	for _, remark := range remarks {
		fmt.Fprintln(w, remark)
	}
	return ending, open, nil
}
