package records

// Frames of HTTP/2 (RFC 9113 section 6).
const (
	headerLength = 9

	typeData         = 0x0
	typeHeaders      = 0x1
	typeReset        = 0x3
	typeWindow       = 0x8
	typeContinuation = 0x9

	flagEndStream = 0x1
)

// frames reads the frames that a server writes, in pieces of any length.
type frames struct {
	header [headerLength]byte
	n      int    // bytes of header so far
	left   int    // bytes of the payload still to come
	size   uint32 // of a window, as far as it has come

	// What the last piece had: the responses that it ended, and whether its last frame is a part of
	// a response. others is true if it had a part of a frame other than of windows.
	ended            int32
	response, others bool
	// window is the sum of the windows that have been announced, in bytes.
	window int64
}

// windows reports whether the last piece had only frames of windows, whole ones.
func (f *frames) windows() bool { return !f.others && f.n == 0 && f.left == 0 }

func (f *frames) read(p []byte) {
	f.ended, f.others = 0, false
	for len(p) > 0 {
		var n int
		if f.left > 0 {
			n = min(f.left, len(p))
			f.payload(p[:n])
		} else {
			n = copy(f.header[f.n:], p)
			if f.n += n; f.n == headerLength {
				f.begin()
			}
		}
		p = p[n:]
	}
}

// begin reads the header of a frame.
func (f *frames) begin() {
	f.n, f.size = 0, 0
	f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	kind, ends := f.header[3], f.header[4]&flagEndStream != 0
	f.response = kind == typeData || kind == typeHeaders || kind == typeContinuation
	f.others = f.others || kind != typeWindow
	if kind == typeReset || ends && (kind == typeData || kind == typeHeaders) {
		f.ended++
	}
}

func (f *frames) payload(p []byte) {
	f.left -= len(p)
	if f.header[3] != typeWindow {
		f.others = true
		return
	}
	for _, b := range p {
		f.size = f.size<<8 | uint32(b)
	}
	if f.left == 0 {
		f.window += int64(f.size)
	}
}
