package testenv

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// MailUser and MailPassword authenticate at a MailServer.
const (
	MailUser     = "shop"
	MailPassword = "a password of the mail server"
)

// Mail is an e-mail as a MailServer accepted it.
type Mail struct {
	From, To string // of the envelope
	Header   mail.Header
	Subject  string
	Plain    string
	HTML     string
}

var mailLink = regexp.MustCompile(`https?://\S+`)

// Link returns the first address in the text.
func (m Mail) Link() string { return mailLink.FindString(m.Plain) }

// Token returns what the link has behind #.
func (m Mail) Token() string {
	_, token, _ := strings.Cut(m.Link(), "#")
	return token
}

// MailServer is an SMTP server that requires authentication, and offers STARTTLS.
type MailServer struct {
	Host, Port string
	TLS        *tls.Config // trusts its certificate
	open       bool        // to clients that did not authenticate

	mu      sync.Mutex
	mails   []Mail                // guarded by mu
	refuses func(to string) error // guarded by mu
	server  *smtp.Server
}

// NewLocalMailServer is like NewMailServer without authentication, as on the same host.
func NewLocalMailServer(t testing.TB) *MailServer {
	t.Helper()
	return startMailServer(t, true)
}

// NewMailServer starts an SMTP server until the test ends.
func NewMailServer(t testing.TB) *MailServer {
	t.Helper()
	return startMailServer(t, false)
}

// NewInternationalMailServer is like NewMailServer with SMTPUTF8.
func NewInternationalMailServer(t testing.TB) *MailServer {
	t.Helper()
	return startMailServer(t, false, func(s *smtp.Server) { s.EnableSMTPUTF8 = true })
}

func startMailServer(t testing.TB, open bool, set ...func(*smtp.Server)) *MailServer {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // has a certificate of 127.0.0.1
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	m := &MailServer{open: open, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{server: m},
			nil
	}))
	for _, each := range set {
		each(m.server)
	}
	m.server.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.Host, m.Port, _ = net.SplitHostPort(listener.Addr().String())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.server.Serve(listener) }()
	t.Cleanup(func() {
		_ = m.server.Close()
		_ = listener.Close() // unknown to the server when Serve has not begun
		<-done
	})
	return m
}

// Refuse makes the server answer recipients with an error; nil = it accepts them.
func (m *MailServer) Refuse(refuses func(to string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses = refuses
}

// Mails returns the e-mails that were accepted, the first one first.
func (m *MailServer) Mails() []Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Mail(nil), m.mails...)
}

// To waits for the nth e-mail to an address, the first of which is 1.
func (m *MailServer) To(t testing.TB, address string, nth int) Mail {
	t.Helper()
	var found []Mail
	Eventually(t, Wait, func() bool {
		found = found[:0]
		for _, each := range m.Mails() {
			if each.To == address {
				found = append(found, each)
			}
		}
		return len(found) >= nth
	}, "an e-mail to "+address)
	return found[nth-1]
}

// mailSession is a connection of a client.
type mailSession struct {
	server   *MailServer
	known    bool
	from, to string
}

func (*mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != MailUser || password != MailPassword {
			return smtp.ErrAuthFailed
		}
		s.known = true
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.known && !s.server.open {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.to = to
	if s.server.refuses != nil {
		return s.server.refuses(to)
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	got, err := readMail(r)
	if err != nil {
		return err
	}
	got.From, got.To = s.from, s.to
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, got)
	return nil
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// readMail parses an e-mail with a plain and an HTML part.
func readMail(r io.Reader) (Mail, error) {
	raw, err := mail.ReadMessage(r)
	if err != nil {
		return Mail{}, err
	}
	got := Mail{Header: raw.Header}
	if got.Subject, err = new(mime.WordDecoder).DecodeHeader(raw.Header.Get("Subject")); err != nil {
		return got, err
	}
	_, values, err := mime.ParseMediaType(raw.Header.Get("Content-Type"))
	if err != nil {
		return got, err
	}
	parts := multipart.NewReader(raw.Body, values["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return got, err
		}
		words := strings.ReplaceAll(string(text), "\r\n", "\n")
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			got.HTML = words
		} else {
			got.Plain = words
		}
	}
}
