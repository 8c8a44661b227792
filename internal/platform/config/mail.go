package config

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

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

// Notice are the settings of notices to buyers.
type Notice struct {
	NoticeHookURL    string        `name:"notice-hook-url" group:"mail" placeholder:"URL" help:"Service of the operator that sends notices by SMS or push: https://messages.example.com/seckill. Without it, notices are sent by e-mail only."`
	NoticeHookSecret Secret        `name:"notice-hook-secret" group:"mail" placeholder:"SECRET" help:"Secret that signs the requests to SECKILL_NOTICE_HOOK_URL, as Standard Webhooks defines: whsec_ and base64."`
	NoticeDeadline   time.Duration `name:"notice-deadline" default:"3m" group:"mail" help:"How long before the payment deadline of an order its buyer gets a notice, at most half of the payment window."`
	NoticeOpening    time.Duration `name:"notice-opening" default:"10m" group:"mail" help:"How long before the opening of a sale those who asked for it are reminded."`
}

// notices checks the service of the operator. Its address is checked again by the client.
func (p *Problems) notices(c *Config) {
	if (c.NoticeHookURL == "") != (c.NoticeHookSecret == "") {
		p.add("notice-hook-secret", "and SECKILL_NOTICE_HOOK_URL go together: give both or neither")
		return
	}
	if c.NoticeHookURL == "" {
		return
	}
	u := p.readable("notice-hook-url", c.NoticeHookURL)
	if u != nil && (u.Hostname() == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || len(c.WebhookNetworks) == 0)) {
		p.add("notice-hook-url", "is no address of a service: write https://messages.example.com/seckill; http needs its network in SECKILL_WEBHOOK_NETWORKS")
	}
	if _, err := standardwebhooks.NewWebhook(c.NoticeHookSecret.Reveal()); err != nil ||
		!strings.HasPrefix(c.NoticeHookSecret.Reveal(), "whsec_") {
		p.add("notice-hook-secret", "is no secret of Standard Webhooks: write whsec_ and base64, as from openssl rand -base64 32")
	}
}

// Push are the settings of notices to browsers, by Web Push.
type Push struct {
	PushPrivateKey Secret `name:"push-private-key" group:"mail" placeholder:"KEY" help:"VAPID key that browsers subscribe with, from seckill push-key. Without it, no notices are sent to browsers. With another key, browsers have to subscribe again."`
	PushSubject    string `name:"push-subject" group:"mail" placeholder:"ADDRESS" help:"Where push services reach the operator: mailto:ops@example.com or https://example.com/contact."`
}

// NewPushKey returns a new value of PushPrivateKey.
func NewPushKey() (Secret, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return Secret(base64.RawURLEncoding.EncodeToString(key.Bytes())), nil
}

// PushPublicKey returns the public key that browsers subscribe with, as base64url of the
// uncompressed point.
func PushPublicKey(private Secret) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(private.Reveal())
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	key, err := ecdh.P256().NewPrivateKey(raw)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}

func (p *Problems) push(c *Config) {
	if (c.PushPrivateKey == "") != (c.PushSubject == "") {
		p.add("push-subject", "and SECKILL_PUSH_PRIVATE_KEY go together: give both or neither")
		return
	}
	if c.PushPrivateKey == "" {
		return
	}
	if _, err := PushPublicKey(c.PushPrivateKey); err != nil {
		p.add("push-private-key", "is no key: write what `seckill push-key` prints")
	}
	if !isContact(c.PushSubject) {
		p.add("push-subject", "is no contact: write mailto:ops@example.com or https://example.com/contact")
	}
}

func isContact(text string) bool {
	if address, ok := strings.CutPrefix(text, "mailto:"); ok {
		_, ok = typed.Mailbox(address)
		return ok
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != ""
}
