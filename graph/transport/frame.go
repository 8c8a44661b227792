package transport

import "encoding/binary"

// Data frames bypass the websocket library and are written directly to the connection:
// one system call, no lock except the connection's own, and no write buffer per idle
// socket. The library still reads, answers pings, and closes.

// frameHeader is the space reserved for a header before a payload.
const frameHeader = 10 // bytes; the longest header of a server, with a 64-bit length

// frame completes a text frame (RFC 6455 §5.2: FIN, opcode 1, no mask). buf is
// frameHeader reserved bytes followed by the payload; the result is a subslice.
func frame(buf []byte) []byte {
	const finText = 0x81
	switch n := len(buf) - frameHeader; {
	case n < 126:
		head := buf[frameHeader-2:]
		head[0], head[1] = finText, byte(n) // 0 to 125
		return head
	case n < 1<<16:
		head := buf[frameHeader-4:]
		head[0], head[1] = finText, 126
		binary.BigEndian.PutUint16(head[2:], uint16(n))
		return head
	default:
		buf[0], buf[1] = finText, 127
		binary.BigEndian.PutUint64(buf[2:], uint64(n))
		return buf
	}
}

// header is the reserved space.
var header [frameHeader]byte
