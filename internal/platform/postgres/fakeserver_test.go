package postgres_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// fakeServer speaks enough of the protocol of Postgres for the product's connections, and
// misbehaves once when armed: no real server can be made to break off in the middle of a
// message.
type fakeServer struct {
	listener net.Listener
	running  sync.WaitGroup
	ended    chan struct{}

	armed       atomic.Pointer[misbehaviour]
	fired       chan struct{} // closed when the armed misbehaviour has been sent
	connections atomic.Int32
	starting    atomic.Int32  // connections that wait for the end of their start
	mostAtOnce  atomic.Int32  // the highest value of starting
	starts      chan struct{} // not nil: each start waits for a value
	executed    atomic.Int32  // messages of type Execute and Query

	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

// misbehaviour is what the server does in place of its reply to one message.
type misbehaviour struct {
	name string
	// at are the types of the messages at which it happens: Q(uery), P(arse), B(ind),
	// E(xecute) or S(ync).
	at string
	// do writes the bytes of the misbehaviour and returns whether the connection stays open.
	do     func(s *fakeSession, at byte) (goesOn bool)
	silent bool // the client waits for more
}

type fakeSession struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte // not yet sent
	status byte   // of the transaction: I or T
	server *fakeServer

	query    string            // of the last Query, Parse or Bind
	named    map[string]string // texts of the prepared statements
	skipping bool              // until the next Sync, as after an error
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{listener: l, ended: make(chan struct{})}
	f.running.Go(f.accept)
	t.Cleanup(func() {
		close(f.ended)
		_ = l.Close()
		f.mu.Lock()
		for _, c := range f.open {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.running.Wait()
	})
	return f
}

// dial opens a pool on the server. Its connections give up a silent server after 2 s.
func (f *fakeServer) dial(t *testing.T, pooling bool) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{
		URL:      "postgres://seckill@" + f.listener.Addr().String() + "/seckill?sslmode=disable&statement_timeout=1",
		MaxConns: 4, TransactionPooling: pooling,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// arm makes the next message of a fitting type misbehave.
func (f *fakeServer) arm(m misbehaviour) {
	f.fired = make(chan struct{})
	f.armed.Store(&m)
}

// misbehaved waits until the armed misbehaviour has been sent.
func (f *fakeServer) misbehaved(t *testing.T) {
	t.Helper()
	select {
	case <-f.fired:
	case <-time.After(testenv.Wait):
		t.Fatal("no message came that the server could misbehave at")
	}
}

func (f *fakeServer) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.open = append(f.open, c)
		f.mu.Unlock()
		f.running.Go(func() {
			defer c.Close()
			(&fakeSession{conn: c, in: bufio.NewReader(c), status: 'I', server: f, named: map[string]string{}}).serve()
		})
	}
}

// message returns a message of the protocol.
func message(kind byte, body ...[]byte) []byte {
	var all []byte
	for _, b := range body {
		all = append(all, b...)
	}
	m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(all)+4))
	return append(m, all...)
}

func text(s string) []byte { return append([]byte(s), 0) }

func number16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }

func number32(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func errorResponse(severity, state, words string) []byte {
	return message('E', text("S"+severity), text("V"+severity), text("C"+state), text("M"+words), []byte{0})
}

func notice() []byte {
	return message('N', text("SNOTICE"), text("VNOTICE"), text("C00000"), text("Mnothing"), []byte{0})
}

func (s *fakeSession) ready() []byte { return message('Z', []byte{s.status}) }

// rowDescription describes one column of type text.
func rowDescription() []byte {
	return message('T', number16(1), text("n"), number32(0), number16(0), number32(25), number16(-1&0xffff), number32(-1), number16(0))
}

func dataRow(value string) []byte {
	return message('D', number16(1), number32(len(value)), []byte(value))
}

func (s *fakeSession) serve() {
	startup, err := s.body()
	if err != nil || binary.BigEndian.Uint32(startup) == 80877102 { // a cancel request ends its connection
		return
	}
	s.server.connections.Add(1)
	if !s.server.start() {
		return
	}
	s.send(message('R', number32(0)), message('S', text("server_version"), text("15.4")), message('K', number32(1), number32(2)), s.ready())
	for s.flush() {
		kind, err := s.in.ReadByte()
		if err != nil {
			return
		}
		body, err := s.body()
		if err != nil || kind == 'X' {
			return
		}
		switch kind {
		case 'Q':
			s.query = strings.TrimSuffix(string(body), "\x00")
		case 'P':
			names := strings.Split(string(body), "\x00")
			s.query = names[1]
			s.named[names[0]] = names[1]
		case 'B':
			s.query = s.named[strings.Split(string(body), "\x00")[1]]
		case 'S':
			s.skipping = false
		}
		if s.skipping {
			continue
		}
		if kind == 'E' || kind == 'Q' {
			s.server.executed.Add(1)
		}
		if m := s.server.armed.Load(); m != nil && strings.IndexByte(m.at, kind) >= 0 && s.server.armed.CompareAndSwap(m, nil) {
			goesOn := m.do(s, kind)
			s.flush()
			if !goesOn {
				_ = s.conn.Close()
			}
			close(s.server.fired)
			continue
		}
		s.reply(kind, body)
	}
}

// body reads the length of a message and what follows it.
func (s *fakeSession) body() ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(s.in, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	_, err := io.ReadFull(s.in, body)
	return body, err
}

// start counts a connection that starts, and holds it back if the test does so.
func (f *fakeServer) start() bool {
	if f.starts == nil {
		return true
	}
	n := f.starting.Add(1)
	defer f.starting.Add(-1)
	for most := f.mostAtOnce.Load(); n > most && !f.mostAtOnce.CompareAndSwap(most, n); most = f.mostAtOnce.Load() {
	}
	select {
	case <-f.starts:
		return true
	case <-f.ended:
		return false
	}
}

var parameter = regexp.MustCompile(`\$\d+`)

// reply behaves.
func (s *fakeSession) reply(kind byte, body []byte) {
	switch kind {
	case 'Q':
		if isSelect(s.query) {
			s.send(rowDescription())
		}
		s.execute()
		s.send(s.ready())
	case 'P':
		s.send(message('1'))
	case 'D':
		if body[0] == 'S' { // a statement; P is a portal, whose parameters are bound
			n := len(parameter.FindAllString(s.query, -1))
			types := number16(n)
			for range n {
				types = append(types, number32(25)...)
			}
			s.send(message('t', types))
		}
		if isSelect(s.query) {
			s.send(rowDescription())
		} else {
			s.send(message('n'))
		}
	case 'B':
		s.send(message('2'))
	case 'E':
		s.execute()
	case 'C':
		s.send(message('3'))
	case 'S':
		s.send(s.ready())
	}
}

func isSelect(query string) bool { return strings.HasPrefix(query, "SELECT") }

func (s *fakeSession) execute() {
	switch verb, _, _ := strings.Cut(s.query, " "); verb {
	case "SELECT":
		s.send(dataRow("7"), message('C', text("SELECT 1")))
	case "INSERT":
		s.send(message('C', text("INSERT 0 1")))
	case "BEGIN":
		s.status = 'T'
		s.send(message('C', text("BEGIN")))
	case "COMMIT", "ROLLBACK":
		s.status = 'I'
		s.send(message('C', text(verb)))
	case ";":
		s.send(message('I'))
	default:
		s.send(message('C', text(verb+" 1")))
	}
}

func (s *fakeSession) send(messages ...[]byte) {
	for _, m := range messages {
		s.out = append(s.out, m...)
	}
}

// flush sends what was written; false means that the client has gone.
func (s *fakeSession) flush() bool {
	_, err := s.conn.Write(s.out)
	s.out = s.out[:0]
	return err == nil
}
