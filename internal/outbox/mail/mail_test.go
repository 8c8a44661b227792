package mail_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"seckill/ent"
	entmail "seckill/ent/mail"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// env is a database, an outbox, a sender and a mail server.
type env struct {
	*testing.T

	db     *postgres.DB
	clock  *clock.Fake
	outbox *mail.Outbox
	sender *mail.Sender
	server *testenv.MailServer
}

func onBoth(t *testing.T, test func(e *env)) {
	t.Helper()
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) { test(setup(t, db)) })
}

func setup(t *testing.T, db *postgres.DB) *env {
	t.Helper()
	return setupWith(t, db, testenv.NewMailServer(t))
}

func setupWith(t *testing.T, db *postgres.DB, server *testenv.MailServer) *env {
	t.Helper()
	e := &env{T: t, db: db, clock: clock.NewFake(time.Now().Truncate(time.Millisecond)), server: server}
	e.outbox = mail.NewOutbox(testenv.Keys(t), e.clock)
	e.sender = e.another()
	return e
}

// another returns the sender of another process.
func (e *env) another() *mail.Sender {
	e.Helper()
	sender, err := mail.NewSender(mail.Config{
		DB: e.db, Keys: testenv.Keys(e.T), Shop: "https://shop.example", TLS: e.server.TLS, Clock: e.clock, Log: slog.New(slog.DiscardHandler),
		Server: &config.SMTP{Host: e.server.Host, Port: e.server.Port, User: testenv.MailUser, Password: testenv.MailPassword, From: "The Shop <shop@shop.example>"},
	})
	if err != nil {
		e.Fatal(err)
	}
	return sender
}

func (e *env) write(m mail.Message) {
	e.Helper()
	if err := e.db.WithTx(e.Context(), func(ctx context.Context, tx *ent.Tx) error { return e.outbox.Write(ctx, tx, m) }); err != nil {
		e.Fatal(err)
	}
}

func (e *env) step() error {
	e.Helper()
	_, err := e.sender.Step(e.Context())
	return err
}

func (e *env) row() *ent.Mail {
	e.Helper()
	row, err := e.db.Ent.Mail.Query().Only(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	return row
}

func reset() mail.Message {
	return mail.Message{
		To: "one@example.com", Kind: mail.ResetPassword, Language: locale.English,
		Content: mail.Content{Path: "/reset-password#secret-of-the-link", Life: 30 * time.Minute},
	}
}

func TestAnEMailArrivesOnceAndLeavesNoSecretBehind(t *testing.T) {
	onBoth(t, func(e *env) {
		e.write(reset())
		if row := e.row(); strings.Contains(string(row.Content), "secret-of-the-link") || len(row.Content) == 0 {
			e.Errorf("content at rest %q", row.Content)
		}
		for range 2 {
			if err := e.step(); err != nil {
				e.Fatal(err)
			}
		}
		mails := e.server.Mails()
		if len(mails) != 1 {
			e.Fatalf("%d e-mails", len(mails))
		}
		got, row := mails[0], e.row()
		if got.To != "one@example.com" || got.From != "shop@shop.example" || got.Subject != "Choose a new password" ||
			got.Link() != "https://shop.example/reset-password#secret-of-the-link" || !strings.Contains(got.Plain, "30 minutes") {
			e.Errorf("e-mail %+v", got)
		}
		if !strings.Contains(got.HTML, `<a href="https://shop.example/reset-password#secret-of-the-link">`) {
			e.Errorf("HTML %s", got.HTML)
		}
		if got.Header.Get("Message-Id") != "<"+row.ID.String()+"@shop.example>" || got.Header.Get("Auto-Submitted") != "auto-generated" {
			e.Errorf("header %v", got.Header)
		}
		if row.State != entmail.StateSENT || len(row.Content) != 0 {
			e.Errorf("row %+v", row)
		}
	})
}

func TestEveryKindHasATextInBothLanguages(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	for _, kind := range mail.Kinds() {
		for _, language := range []locale.Language{locale.English, locale.Chinese} {
			m := reset()
			m.Kind, m.Language = kind, language
			e.write(m)
		}
	}
	for range 3 { // a step sends one batch
		if err := e.step(); err != nil {
			t.Fatal(err)
		}
	}
	subjects := map[string]bool{}
	for _, m := range e.server.Mails() {
		subjects[m.Subject] = true
		if m.Link() == "" || strings.Contains(m.Plain, "<no value>") {
			t.Errorf("%s: %s", m.Subject, m.Plain)
		}
	}
	if want := 2 * len(mail.Kinds()); len(subjects) != want {
		t.Errorf("%d subjects, want %d: %v", len(subjects), want, subjects)
	}
}

func TestTheTimeToPayIsNeverRoundedUp(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for left, want := range map[time.Duration]map[mail.Kind]string{
		3 * time.Minute:                {mail.PaymentDeadline: "3 minutes left", mail.SaleReminder: "in 3 minutes"},
		3*time.Minute - 1:              {mail.PaymentDeadline: "2 minutes left", mail.SaleReminder: "in 3 minutes"},
		time.Minute:                    {mail.PaymentDeadline: "1 minute left", mail.SaleReminder: "in 1 minute"},
		45*time.Second + time.Second/2: {mail.PaymentDeadline: "45 seconds left", mail.SaleReminder: "in 1 minute"},
	} {
		for kind, text := range want {
			title, _, err := mail.Summary(kind, locale.English, mail.Content{Notice: mail.NoticeContent{At: now.Add(left)}}, now)
			if err != nil || !strings.Contains(title, text) {
				t.Errorf("%s, %s left: %q, want %q; %v", kind, left, title, text, err)
			}
		}
	}
}

func TestAnEMailIsRepeatedUntilTheServerTakesItOrItIsTooLate(t *testing.T) {
	onBoth(t, func(e *env) {
		m := reset()
		m.Until = e.clock.Now().Add(30 * time.Minute)
		e.write(m)
		e.server.Refuse(func(string) error { return &smtp.SMTPError{Code: 451, Message: "later"} })
		tries := 0
		for e.row().State == entmail.StatePENDING {
			if err := e.step(); err != nil {
				e.Fatal(err)
			}
			if row := e.row(); row.Attempts > tries {
				tries = row.Attempts
			}
			e.clock.Advance(time.Minute)
		}
		if row := e.row(); row.State != entmail.StateGIVEN_UP || len(row.Content) != 0 || tries < 3 || tries > 8 {
			e.Errorf("after %d tries: %+v", tries, row)
		}
	})
}

func TestARefusedRecipientIsNotTriedAgain(t *testing.T) {
	onBoth(t, func(e *env) {
		e.write(reset())
		e.server.Refuse(func(string) error { return &smtp.SMTPError{Code: 550, Message: "no such mailbox"} })
		if err := e.step(); err != nil {
			e.Fatal(err)
		}
		if row := e.row(); row.State != entmail.StateGIVEN_UP || row.Attempts != 1 || !strings.Contains(row.Error, "no such mailbox") {
			e.Errorf("row %+v", row)
		}
	})
}

func TestWithoutTheMailServerNoAttemptIsSpent(t *testing.T) {
	onBoth(t, func(e *env) {
		e.write(reset())
		e.server.TLS.ServerName = "another.example" // its certificate is for another host
		if err := e.step(); err == nil || !strings.Contains(err.Error(), "certificate") {
			e.Errorf("error %v", err)
		}
		if row := e.row(); row.State != entmail.StatePENDING || row.Attempts != 0 {
			e.Errorf("row %+v", row)
		}
	})
}

func TestProcessesShareTheEMails(t *testing.T) {
	t.Parallel()
	e := setup(t, testdb.Postgres(t))
	const mails = 60
	for range mails {
		e.write(reset())
	}
	var all sync.WaitGroup
	for range 4 {
		sender := e.another()
		all.Go(func() {
			for range mails / 16 {
				if _, err := sender.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ids := map[string]bool{}
	for _, m := range e.server.Mails() {
		ids[m.Header.Get("Message-Id")] = true
	}
	if n := len(e.server.Mails()); n != mails || len(ids) != mails {
		t.Errorf("%d e-mails with %d ids, want %d", n, len(ids), mails)
	}
}

func TestOldEMailsAreDeleted(t *testing.T) {
	onBoth(t, func(e *env) {
		e.write(reset())
		if err := e.step(); err != nil {
			e.Fatal(err)
		}
		e.write(reset())
		e.clock.Advance(8 * 24 * time.Hour)
		if counts, err := mail.Purge(e.Context(), e.db, e.clock); err != nil || counts["mails_deleted"] != 1 {
			e.Errorf("%v, %v", counts, err)
		}
	})
}

func TestAnAddressOutsideASCIIIsSentToWhereTheServerTakesIt(t *testing.T) {
	t.Parallel()
	const address = "用户@xn--fsqu00a.xn--fiqs8s"
	m := reset()
	m.To = address
	e := setupWith(t, testdb.Postgres(t), testenv.NewInternationalMailServer(t))
	e.write(m)
	if err := e.step(); err != nil {
		t.Fatal(err)
	}
	if got := e.server.To(t, address, 1); !strings.Contains(got.Plain, "30 minutes") || e.row().State != entmail.StateSENT {
		t.Errorf("%+v", e.row())
	}
	if bad, err := mail.Undeliverable(t.Context(), e.db.Ent.Mail, address); bad || err != nil {
		t.Errorf("undeliverable: %t, %v", bad, err)
	}

	plain := setup(t, testdb.Postgres(t))
	plain.write(m)
	if err := plain.step(); err != nil {
		t.Fatal(err)
	}
	if row := plain.row(); row.State != entmail.StateGIVEN_UP || row.Attempts != 1 || !strings.Contains(row.Error, "SMTPUTF8") || len(plain.server.Mails()) != 0 {
		t.Errorf("row %+v, %d e-mails", row, len(plain.server.Mails()))
	}
	if bad, err := mail.Undeliverable(t.Context(), plain.db.Ent.Mail, address); !bad || err != nil {
		t.Errorf("undeliverable: %t, %v", bad, err)
	}
}

func TestARecipientOfAnEarlierReleaseThatIsNoAddressIsGivenUpAtOnce(t *testing.T) {
	onBoth(t, func(e *env) {
		m := reset()
		m.To = "a..b@example.com"
		e.write(m)
		if err := e.step(); err != nil {
			e.Fatal(err)
		}
		if row := e.row(); row.State != entmail.StateGIVEN_UP || row.Attempts != 1 {
			e.Errorf("row %+v", row)
		}
	})
}
