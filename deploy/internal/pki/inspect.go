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

// Inspect prints a row for each certificate in the folder, and then a line for each
// file that others than its owner may read. It reports how many certificates end
// within a time, and how many such files there are.
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
			remarks = append(remarks, fmt.Sprintf("%s: mode %04o: its owner alone should be able to read it", name, info.Mode().Perm()))
		}
		if filepath.Ext(path) != ".crt" || strings.HasSuffix(path, "-ca.crt") {
			return nil // the authorities have rows of their own
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
