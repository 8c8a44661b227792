package postgres

import (
	"encoding/binary"
	"strings"
)

// Protocol of Postgres, version 3: https://www.postgresql.org/docs/current/protocol-message-formats.html
const (
	headerSize  = 5        // type of a message and its length, which counts itself
	sslRequest  = 80877103 // code of the message that asks for encryption
	tlsRecord   = 0x16     // first byte of a TLS handshake, with sslnegotiation=direct
	maxBody     = 1 << 30  // bytes of a message; Postgres allocates no more
	maxShort    = 30_000   // bytes of a message that carries no data; libpq has the same bound
	serverTypes = "123ACDEGHIKNRSTVWZcdnstv"
	longTypes   = "ADENRSTVdt"
	asyncTypes  = "ANS" // notification, notice, parameter status: they may come at any time
)

// wire follows the messages on a connection, because lib/pq uses connections further whose
// reply it has not read to its end (lib/pq#1320, #1324, #1450), and panics on
// lengths below 4. It does not see into an encrypted connection.
type wire struct {
	opaque     bool // encrypted
	started    bool // the client has sent its startup message
	sslAsked   bool // the next byte says whether the server encrypts
	owed       int  // ReadyForQuery messages that the server has yet to send
	answered   bool // the server has sent another message since the last request
	header     [headerSize]byte
	have, left int  // bytes of the header that have come, and of the body that have not
	broken     bool // no more requests may be sent
	refusing   bool // no more bytes may be read
}

// inStep reports whether the server has answered all requests.
func (w *wire) inStep() bool {
	return !w.broken && (w.opaque || w.owed == 0 && w.have == 0 && w.left == 0)
}

// sent follows what the client sends: whole messages.
func (w *wire) sent(p []byte) {
	switch {
	case w.opaque || len(p) == 0:
		return
	case w.started:
	case p[0] == tlsRecord:
		w.opaque = true
		return
	case len(p) == 8 && binary.BigEndian.Uint32(p[4:]) == sslRequest:
		w.sslAsked = true
		return
	default:
		w.started, w.owed = true, 1
		return
	}
	for len(p) >= headerSize {
		switch p[0] {
		case 'Q', 'S', 'F': // Query, Sync, FunctionCall
			w.owed++
			w.answered = false
		}
		p = p[min(len(p), 1+int(binary.BigEndian.Uint32(p[1:]))):]
	}
}

// received follows what the server sent, and returns how many bytes of it the client may
// read.
func (w *wire) received(p []byte) int {
	if w.sslAsked && len(p) > 0 {
		w.sslAsked, w.opaque = false, p[0] == 'S'
		return len(p)
	}
	for at := 0; at < len(p) && !w.opaque && !w.broken; {
		if w.left > 0 {
			n := min(w.left, len(p)-at)
			w.left -= n
			at += n
			continue
		}
		begin := at
		n := copy(w.header[w.have:], p[at:])
		w.have += n
		at += n
		if w.have == headerSize && !w.message() {
			return begin
		}
	}
	return len(p)
}

// message takes the header of a message. It returns false when the client must not see it.
func (w *wire) message() bool {
	kind, body := w.header[0], int(binary.BigEndian.Uint32(w.header[1:]))-4
	w.have = 0
	if kind == 'E' && (body < 4 || body > maxShort) {
		// The text of a server that cannot start a process, or an error that lib/pq reads in part.
		w.broken = true
		return true
	}
	async := strings.IndexByte(asyncTypes, kind) >= 0
	switch {
	case strings.IndexByte(serverTypes, kind) < 0, body < 0, body > maxBody, body > maxShort &&
		strings.IndexByte(longTypes, kind) < 0,
		w.owed == 0 && !async, kind == 'Z' && !w.answered:
		w.broken, w.refusing = true, true
		return false
	case kind == 'Z':
		w.owed--
	case !async:
		w.answered = true
	}
	w.left = body
	return true
}
