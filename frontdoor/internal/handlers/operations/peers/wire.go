package peers

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
)

var (
	errTooMany = fmt.Errorf("it was not called: only %d are", maxAsked)
	errAlone   = errors.New("it was not called: this front door has no --peer-cert-file")
	errEarlier = errors.New("it was not called: its release does not support it")
	errNowhere = errors.New("it was not called: it has no address for others (advice: set its --advertise-address)")
	errSilent  = errors.New("it does not respond")
	errOther   = errors.New("another front door responds at its address")
	errLong    = fmt.Errorf("its response has more than %d bytes", maxAnswer)
)

// Ask asks another front door. The address is that of a record, which only front doors write, and the server
// there gets the request only if it has a certificate of a front door.
func (p *Peers) Ask(ctx context.Context, other records.Announced, q Question) (a Answer, err error) {
	switch {
	case p.Identity == nil:
		return a, errAlone
	case other.Instance == "":
		return a, errEarlier
	case other.At == "":
		return a, errNowhere
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout())
	defer cancel()
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: p.Identity.ClientConfig(service, protocol)}
	conn, err := dialer.DialContext(ctx, "tcp", other.At)
	if err != nil {
		p.Log.Debug("calling another front door failed", "at", other.At, "error", err)
		return a, errSilent
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return a, err
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, errSilent
	}
	limited := &io.LimitedReader{R: conn, N: maxAnswer}
	if err := json.NewDecoder(limited).Decode(&a); err != nil {
		p.Log.Debug("another front door did not respond", "at", other.At, "error", err)
		if limited.N == 0 {
			return Answer{}, errLong
		}
		return Answer{}, errSilent
	}
	if a.Instance != other.Instance {
		return Answer{}, errOther
	}
	return a, nil
}

// answer answers one question. The handshake is complete: the client has a certificate of the
// suite's authority.
func (p *Peers) answer(conn *tls.Conn) error {
	if !p.allowed(conn) {
		return conn.Close()
	}
	if err := conn.SetDeadline(time.Now().Add(p.timeout())); err != nil {
		return err
	}
	var q Question
	if err := json.NewDecoder(io.LimitReader(conn, maxQuestion)).Decode(&q); err != nil {
		return err
	}
	if q.Close != "" {
		p.Log.Info("closing a watch for another front door", "id", q.Close)
	}
	if err := json.NewEncoder(conn).Encode(p.Answer(q)); err != nil {
		return err
	}
	return conn.Close()
}
