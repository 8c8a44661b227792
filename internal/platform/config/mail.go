package config

import (
	"fmt"
	"net"
	"net/mail"

	"seckill/internal/platform/typed"
)

// Mail are the settings of e-mail. Without SMTPURL no e-mail is sent.
type Mail struct {
	SMTPURL      Secret  `name:"smtp-url" group:"mail" placeholder:"URL" help:"Mail server: smtp://user@mail.example.com:587, or smtps for a port that speaks TLS at once. Without it, passwords cannot be reset and addresses cannot be verified."`
	SMTPPassword Secret  `name:"smtp-password" group:"mail" placeholder:"PASSWORD" help:"Password of the user in SECKILL_SMTP_URL, unless that has one."`
	SMTPFrom     string  `name:"smtp-from" group:"mail" placeholder:"ADDRESS" help:"Sender of e-mails: Shop <shop@example.com>."`
	SMTPTLS      SMTPTLS `name:"smtp-tls" default:"required" group:"mail" help:"STARTTLS of an smtp address: required, or off, for a server on this host or a private network."`
}

// SMTPTLS selects whether the connection to the mail server must be encrypted.
type SMTPTLS string

// Values of SMTPTLS.
const (
	SMTPTLSRequired SMTPTLS = "required"
	SMTPTLSOff      SMTPTLS = "off"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *SMTPTLS) UnmarshalText(text []byte) error {
	return oneOf(s, text, SMTPTLSRequired, SMTPTLSOff)
}

// SMTP is a mail server.
type SMTP struct {
	Host, Port     string
	User, Password string // both "" = without authentication
	TLS            bool   // from the first byte; otherwise STARTTLS
	Plain          bool   // without TLS
	From           string
}

// SMTP returns the mail server; nil without one. Validate has checked the settings.
func (c *Config) SMTP() *SMTP {
	u, err := readAddress(c.SMTPURL.Reveal())
	if c.SMTPURL == "" || err != nil {
		return nil
	}
	server := &SMTP{
		Host: u.Hostname(), Port: u.Port(), User: u.User.Username(), Password: c.SMTPPassword.Reveal(),
		TLS: u.Scheme == "smtps", Plain: u.Scheme == "smtp" && c.SMTPTLS == SMTPTLSOff, From: c.SMTPFrom,
	}
	if password, given := u.User.Password(); given {
		server.Password = password
	}
	if server.Port == "" {
		server.Port = "587" // of submission, RFC 6409
		if server.TLS {
			server.Port = "465" // RFC 8314
		}
	}
	return server
}

// Sender returns a sender of e-mails, "Shop <shop@example.com>" or the address alone, with its
// domain in ASCII.
func Sender(text string) (*mail.Address, error) {
	sender, err := mail.ParseAddress(text)
	if err != nil {
		return nil, err
	}
	address, ok := typed.Mailbox(sender.Address)
	if !ok {
		return nil, fmt.Errorf("%q is no address that e-mail can be sent from", sender.Address)
	}
	return &mail.Address{Name: sender.Name, Address: address}, nil
}

// mail checks the mail server, whose address may hold a password and is not printed.
func (p *Problems) mail(c *Config) {
	if c.SMTPURL == "" {
		if c.SMTPFrom != "" {
			p.add("smtp-url", "is not set, and SECKILL_SMTP_FROM is: give the mail server, smtp://user@host:587")
		}
		return
	}
	u := p.readable("smtp-url", c.SMTPURL.Reveal())
	if u == nil {
		return
	}
	if u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Path != "" || u.RawQuery != "" {
		p.add("smtp-url", "is no mail server: write smtp://user@host:587, or smtps://user@host:465")
		return
	}
	if _, err := Sender(c.SMTPFrom); err != nil {
		p.add("smtp-from", "is no sender: write Shop <shop@example.com>")
	}
	if c.PublicURL == "" && c.Production() {
		p.add("public-url", "is not set, and SECKILL_SMTP_URL is: e-mails have links to the shop, so give its address, https://shop.example.com")
	}
	server := c.SMTP()
	if (server.User == "") != (server.Password == "") {
		p.add("smtp-password", "and the user in SECKILL_SMTP_URL go together: give both or neither")
	}
	if ip := net.ParseIP(server.Host); server.Plain && server.Password != "" && server.Host != "localhost" &&
		(ip == nil || !ip.IsLoopback()) {
		p.add("smtp-tls", "is off, and the password would cross the network in the clear: set it to required")
	}
}
