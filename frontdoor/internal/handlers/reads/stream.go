package reads

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// stream is the destination of a watch's events: the response body, or messages of a
// WebSocket.
type stream interface {
	// begin sends the headers.
	begin(contentType string) error
	// send sends complete frames.
	send(frames []byte) error
	flush() error
	// end sends a closing message, if the protocol has one.
	end()
}

// openStream returns the stream for a request. ctx must not end before the stream does.
func openStream(ctx context.Context, w http.ResponseWriter, r *http.Request) stream {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return &socket{ctx: ctx, w: w, r: r}
	}
	return body{w, http.NewResponseController(w)}
}

// body is a chunked response.
type body struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (b body) begin(contentType string) error {
	b.w.Header().Set("Content-Type", contentType)
	b.w.WriteHeader(http.StatusOK)
	return nil
}

func (b body) send(frames []byte) error {
	_, err := b.w.Write(frames)
	return err
}

func (b body) flush() error { return b.control.Flush() }
func (b body) end()         {}

// messagePatience is how long a client may take to accept a batch of WebSocket
// messages.
const messagePatience = 30 * time.Second

// socket sends each event as a text message.
type socket struct {
	ctx  context.Context
	w    http.ResponseWriter
	r    *http.Request
	conn *websocket.Conn
}

func (s *socket) begin(string) error {
	// The origin check is not needed: the caller has authenticated with a header that
	// no foreign page can send.
	conn, err := websocket.Accept(s.w, s.r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: s.subprotocols()})
	if err != nil {
		return err
	}
	s.conn = conn
	s.ctx = conn.CloseRead(s.ctx)
	return nil
}

// subprotocols returns those that the client offers, except the one that carries its
// token.
func (s *socket) subprotocols() (list []string) {
	for offered := range strings.SplitSeq(s.r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if p := strings.TrimSpace(offered); p != "" && !strings.HasPrefix(p, "base64url.bearer.") {
			list = append(list, p)
		}
	}
	return list
}

func (s *socket) send(frames []byte) error {
	// A hijacked connection has no other write deadline.
	ctx, cancel := context.WithTimeout(s.ctx, messagePatience)
	defer cancel()
	for line := range bytes.Lines(frames) {
		if err := s.conn.Write(ctx, websocket.MessageText, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}

func (s *socket) flush() error { return s.ctx.Err() }

func (s *socket) end() {
	if s.conn != nil {
		_ = s.conn.Close(websocket.StatusNormalClosure, "")
	}
}
