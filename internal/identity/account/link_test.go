package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/refusedattempt"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/testenv"
)

// post is a fixture with a mail server.
type post struct {
	*fixture

	server *testenv.MailServer
	sender *mail.Sender
}

// withMail adds a mail server to a process.
func (f *fixture) withMail() *post {
	f.t.Helper()
	f.outbox = mail.NewOutbox(testKeys, f.clock)
	p := &post{server: testenv.NewMailServer(f.t)}
	var err error
	p.sender, err = mail.NewSender(mail.Config{
		DB: f.db, Keys: testKeys, Shop: "https://shop.example", TLS: p.server.TLS, Clock: f.clock, Log: slog.New(slog.DiscardHandler),
		Server: &config.SMTP{Host: p.server.Host, Port: p.server.Port, User: testenv.MailUser, Password: testenv.MailPassword, From: "shop@shop.example"},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	p.fixture = f.another(testKeys)
	return p
}

// phones takes messages to phone numbers.
type phones struct{ texts []mail.Text }

// SendText implements mail.Texts.
func (p *phones) SendText(_ context.Context, t mail.Text) error {
	p.texts = append(p.texts, t)
	return nil
}

// withTexts adds a service that sends to phone numbers to a process without a mail server.
func (f *fixture) withTexts() (*post, *phones) {
	f.t.Helper()
	f.texts = mail.NewOutbox(testKeys, f.clock)
	to := &phones{}
	sender, err := mail.NewSender(mail.Config{
		DB: f.db, Keys: testKeys, Shop: "https://shop.example", Texts: to, Clock: f.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return &post{fixture: f.another(testKeys), sender: sender}, to
}

func TestAPhoneAccountGetsItsLinksByTheOperatorsService(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p, to := f.withTexts()
		p.limited()
		last := func(kind mail.Kind, n int) (token string) {
			t.Helper()
			if _, err := p.sender.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(to.texts) != n {
				t.Fatalf("%d messages, want %d: %+v", len(to.texts), n, to.texts)
			}
			m := to.texts[n-1]
			if m.Kind != kind || m.To != "+12065550123" || m.Title == "" || m.Body == "" || strings.Contains(m.Body, "e-mail") {
				t.Errorf("message %+v", m)
			}
			_, token, _ = strings.Cut(m.URL, "#")
			return token
		}
		who := someone()
		who.Account = "+1 (206) 555-0123"
		in := p.register(who)
		verify := last(mail.VerifyAddress, 1)
		for range 2 { // people open links again
			if account, err := p.ConfirmEmail(t.Context(), verify, address(1)); err != nil || account != "+12065550123" {
				t.Errorf("confirmed %q, %v", account, err)
			}
		}
		if u, err := p.store.User(t.Context(), in.User.ID); err != nil || !u.Verified {
			t.Errorf("%+v %v", u, err)
		}
		wantReason(t, "request", p.forgot("+1 206.555.0123"), "")
		reset := last(mail.ResetPassword, 2)
		if _, err := p.reset(reset, freshPassword); err != nil {
			t.Error(err)
		}
		_, err := p.reset(reset, "a third horse battery")
		wantReason(t, "used link", err, fault.LinkInvalid)
		last(mail.PasswordChanged, 3)
		p.login("+12065550123", freshPassword)

		for range 5 { // at most three links at once
			wantReason(t, "request again", p.forgot(who.Account), "")
		}
		if _, err := p.sender.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := len(to.texts)
		if n != 4 { // three links and the notice
			t.Errorf("%d messages to one number", n)
		}
		wantReason(t, "unknown number", p.forgot("+12065550199"), "")
		wantReason(t, "e-mail without a mail server", p.forgot("a@b.co"), fault.MailUnavailable)
		if _, err := p.sender.Step(t.Context()); err != nil || len(to.texts) != n {
			t.Errorf("%d messages, %v", len(to.texts)-n, err)
		}
	})
}

func TestAPhoneNumberThatNothingReachesIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		who.Account = "+12065550123"
		in := p.register(who)
		for _, account := range []string{who.Account, "+12065550199"} { // the same with and without an account
			err := p.forgot(account)
			wantReason(t, "reset", err, fault.MailUnavailable)
			if _, ok := errors.AsType[NoTexts](err); !ok {
				t.Errorf("refused as %#v", err)
			}
		}
		err := p.RequestEmail(t.Context(), p.principal(in.Tokens.Access), RequestEmailInput{Email: who.Account, Addr: address(1)})
		wantReason(t, "verify", err, fault.MailUnavailable)
	})
}

func TestAUsedLinkOfAVerifiedAddressSaysSoAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		in := p.register(who)
		token := p.deliver(who.Account).Token()
		for range 3 {
			if account, err := p.ConfirmEmail(t.Context(), token, address(1)); err != nil || account != in.User.Account {
				t.Errorf("confirmed %q, %v", account, err)
			}
		}
		if err := f.db.Ent.User.UpdateOneID(in.User.ID).SetAccount("other@example.com").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := p.ConfirmEmail(t.Context(), token, address(1))
		wantReason(t, "a link of a former address", err, fault.LinkInvalid)
		_, err = p.ConfirmEmail(t.Context(), "unknown", address(1))
		wantReason(t, "an unknown link", err, fault.LinkInvalid)
	})
}

// deliver sends what is in the outbox and returns the last e-mail to an address, nil
// without one.
func (p *post) deliver(to string) *testenv.Mail {
	p.t.Helper()
	if _, err := p.sender.Step(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	var last *testenv.Mail
	for _, m := range p.server.Mails() {
		if m.To == to {
			last = &m
		}
	}
	return last
}

func (p *post) forgot(account string) error {
	p.t.Helper()
	return p.RequestReset(p.t.Context(), RequestResetInput{Account: account, Language: locale.English, Addr: address(1)})
}

func (p *post) reset(token, password string) (int, error) {
	p.t.Helper()
	return p.ResetPassword(p.t.Context(), ResetPasswordInput{Token: token, Next: password, Language: locale.English, Addr: address(1)})
}

const freshPassword = "another horse battery"

func wantReason(t *testing.T, what string, err error, want fault.Reason) {
	t.Helper()
	if got := fault.ReasonOf(err); got != want || (want == "") != (err == nil) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestAForgottenPasswordIsReplacedByALinkThatWorksOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		in := p.register(who)
		other := p.login(who.Account, who.Password)
		wantReason(t, "request", p.forgot("  "+strings.ToUpper(who.Account)), "")
		m := p.deliver(who.Account)
		if m == nil || !strings.HasPrefix(m.Link(), "https://shop.example/reset-password#") {
			t.Fatalf("e-mail %+v", m)
		}
		_, err := p.reset(m.Token(), "short")
		wantReason(t, "short password", err, fault.InvalidInput)
		ended, err := p.reset(m.Token(), freshPassword)
		wantReason(t, "reset", err, "")
		if ended != 2 || p.principal(in.Tokens.Access) != nil || p.principal(other.Tokens.Access) != nil {
			t.Errorf("%d sessions were ended", ended)
		}
		_, err = p.reset(m.Token(), "a third horse battery")
		wantReason(t, "used link", err, fault.LinkInvalid)
		p.login(who.Account, freshPassword)
		if _, err := p.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password}); fault.ReasonOf(err) != fault.InvalidCredentials {
			t.Errorf("the former password: %v", err)
		}
		if notice := p.deliver(who.Account); notice.Subject != "Your password was changed" {
			t.Errorf("notice %q", notice.Subject)
		}
		if u, err := p.store.User(t.Context(), in.User.ID); err != nil || !u.Verified {
			t.Errorf("the link proved the address: %+v %v", u, err)
		}
	})
}

func TestALinkIsUsedByOneOfManyAtOnce(t *testing.T) {
	t.Parallel()
	p := real(t).withMail()
	who := someone()
	p.register(who)
	wantReason(t, "request", p.forgot(who.Account), "")
	token := p.deliver(who.Account).Token()
	var used atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := p.reset(token, freshPassword); err == nil {
				used.Add(1)
			} else if fault.ReasonOf(err) != fault.LinkInvalid && fault.ReasonOf(err) != fault.TooManyTries {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if used.Load() != 1 {
		t.Errorf("used %d times", used.Load())
	}
}

func TestALinkExpiresAndAPasswordChangeVoidsIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		in := p.register(who)
		wantReason(t, "request", p.forgot(who.Account), "")
		late := p.deliver(who.Account).Token()
		p.advance(resetLife)
		_, err := p.reset(late, freshPassword)
		wantReason(t, "after half an hour", err, fault.LinkInvalid)
		wantReason(t, "request", p.forgot(who.Account), "")
		void := p.deliver(who.Account).Token()
		if _, err := p.ChangePassword(t.Context(), &auth.Principal{UserID: in.User.ID, SessionID: in.Session}, ChangePasswordInput{Current: who.Password, Next: freshPassword}); err != nil {
			t.Fatal(err)
		}
		_, err = p.reset(void, "a third horse battery")
		wantReason(t, "after a change", err, fault.LinkInvalid)
	})
}

func TestAskingForAPasswordRevealsNoAccount(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		disabled := p.register(someone())
		if _, err := p.admin.Disable(t.Context(), noUser, disabled.User.ID, "fraud"); err != nil {
			t.Fatal(err)
		}
		phone := someone()
		phone.Account = "+8613800138000"
		p.register(phone)
		before := len(p.server.Mails())
		for _, account := range []string{"stranger@example.com", disabled.User.Account, "no address at all"} {
			wantReason(t, account, p.forgot(account), "")
		}
		for _, account := range []string{phone.Account, "+8613800138001"} {
			wantReason(t, account, p.forgot(account), fault.MailUnavailable)
		}
		p.deliver("")
		for _, m := range p.server.Mails()[before:] {
			if m.Subject != "Confirm your e-mail address" {
				t.Errorf("e-mail %q to %s", m.Subject, m.To)
			}
		}
		links, err := p.db.Ent.AccountLink.Query().All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		resets := 0
		for _, l := range links {
			if l.Purpose == "RESET" {
				resets++
				if l.Address != "" || l.UserID != nil {
					t.Errorf("link %+v", l)
				}
			}
		}
		if resets != 3 { // the same work for each
			t.Errorf("%d links", resets)
		}
	})
}

func TestPasswordMailsPerMailboxAreLimited(t *testing.T) {
	t.Parallel()
	p := real(t).withMail()
	p.limited()
	who := someone()
	p.register(who)
	for range 6 {
		wantReason(t, "request", p.forgot(who.Account), "")
	}
	p.deliver("")
	if n := len(p.server.Mails()); n != mailsPerMailbox.Burst { // with the one of the registration
		t.Errorf("%d e-mails, want %d", n, mailsPerMailbox.Burst)
	}
}

func TestAnAddressIsVerifiedByTheLinkOfTheRegistration(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		in := p.register(who)
		if in.User.Verified {
			t.Error("verified before the link was opened")
		}
		m := p.deliver(who.Account)
		email, err := p.ConfirmEmail(t.Context(), m.Token(), address(1))
		if err != nil || email != who.Account {
			t.Fatalf("%q, %v", email, err)
		}
		if u, err := p.Directory().User(t.Context(), in.User.ID); err != nil || !u.Verified {
			t.Errorf("%+v %v", u, err)
		}
		_, err = p.ConfirmEmail(t.Context(), m.Token(), address(1))
		wantReason(t, "used link of a verified address", err, "")
		_, err = p.reset(m.Token(), freshPassword)
		wantReason(t, "a link of another purpose", err, fault.LinkInvalid)
	})
}

func TestANewAddressReplacesTheFormerOneWhenItsLinkIsOpened(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who, taken := someone(), someone()
		in := p.register(who)
		p.register(taken)
		me := &auth.Principal{UserID: in.User.ID, SessionID: in.Session}
		fresh := someone().Account
		ask := func(email, password string) error {
			return p.RequestEmail(t.Context(), me, RequestEmailInput{Email: email, Password: password, Language: locale.Chinese, Addr: address(1)})
		}
		wantReason(t, "without the password", ask(fresh, ""), fault.InvalidCredentials)
		wantReason(t, "a phone number", ask("+8613800138000", who.Password), fault.MailUnavailable)
		wantReason(t, "neither", ask("13800138000", who.Password), fault.InvalidInput)
		wantReason(t, "an address in use", ask(taken.Account, who.Password), "") // which the answer does not reveal
		_, err := p.ConfirmEmail(t.Context(), p.deliver(taken.Account).Token(), address(1))
		wantReason(t, "an address in use, by its owner", err, fault.AccountTaken)
		wantReason(t, "a new address", ask(fresh, who.Password), "")
		m := p.deliver(fresh)
		if m.Subject != "请验证您的新邮箱" {
			t.Errorf("subject %q", m.Subject)
		}
		if email, err := p.ConfirmEmail(t.Context(), m.Token(), address(1)); err != nil || email != fresh {
			t.Fatalf("%q, %v", email, err)
		}
		p.login(fresh, who.Password)
		if _, err := p.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password}); fault.ReasonOf(err) != fault.InvalidCredentials {
			t.Errorf("the former address: %v", err)
		}
		if notice := p.deliver(who.Account); !strings.Contains(notice.Subject, "changed") && !strings.Contains(notice.Subject, "已修改") {
			t.Errorf("notice %q", notice.Subject)
		}
	})
}

func TestWithoutAMailServerRequestsSaySo(t *testing.T) {
	t.Parallel()
	f := embedded(t)
	in := f.register(someone())
	wantReason(t, "reset", f.RequestReset(t.Context(), RequestResetInput{Account: in.User.Account}), fault.MailUnavailable)
	wantReason(t, "e-mail", f.RequestEmail(t.Context(), &auth.Principal{UserID: in.User.ID}, RequestEmailInput{}), fault.MailUnavailable)
}

func TestOldLinksAreDeleted(t *testing.T) {
	t.Parallel()
	p := real(t).withMail()
	wantReason(t, "request", p.forgot("stranger@example.com"), "")
	for _, want := range []int{0, 1} {
		if counts, err := p.store.PurgeLinks(t.Context()); err != nil || counts["links_deleted"] != want {
			t.Errorf("%v %v, want %d", counts, err, want)
		}
		p.clock.Advance(resetLife + purgeAfter + time.Second)
	}
}

func TestDeletingAnAccountAnonymisesItsOrders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		who := someone()
		in := p.register(who)
		me := &auth.Principal{UserID: in.User.ID, SessionID: in.Session, Role: auth.Customer}
		bought := p.order(in.User.ID)
		p.lives(in.User.ID, bought)
		p.refused(in.User.ID)
		del := DeleteInput{Password: who.Password, Language: locale.English, Addr: address(1)}
		wantReason(t, "a wrong password", p.Delete(t.Context(), me, DeleteInput{Password: "wrong"}), fault.InvalidCredentials)
		wantReason(t, "with an open order", p.Delete(t.Context(), me, del), fault.Conflict)
		if err := p.db.Ent.Order.UpdateOneID(bought).SetStatus("PAID").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry := p.enters(in.User.ID)
		for _, open := range []waitlistentry.Status{waitlistentry.StatusENTERED, waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED} {
			p.moves(entry, open)
			wantReason(t, "with an entry that is "+string(open), p.Delete(t.Context(), me, del), fault.Conflict)
		}
		p.moves(entry, waitlistentry.StatusLEFT)
		document, err := p.PersonalData(t.Context(), me, PersonalDataInput{Password: who.Password, Addr: address(1)})
		var data struct {
			Account string
			Orders  []struct {
				Number    string
				Recipient struct{ Street string }
			}
			Addresses []struct{ Street string }
		}
		if !strings.Contains(string(document), `"code": "SOLD_OUT"`) {
			t.Errorf("no refused attempt in %s", document)
		}
		if err != nil || json.Unmarshal(document, &data) != nil || data.Account != who.Account || len(data.Orders) != 1 ||
			len(data.Addresses) != 1 || data.Orders[0].Recipient.Street != data.Addresses[0].Street {
			t.Errorf("personal data %s %v", document, err)
		}
		wantReason(t, "delete", p.Delete(t.Context(), me, del), "")
		if p.principal(in.Tokens.Access) != nil {
			t.Error("the session goes on")
		}
		if _, err := p.Login(t.Context(), LoginInput{Account: who.Account, Password: who.Password}); fault.ReasonOf(err) != fault.InvalidCredentials {
			t.Errorf("sign-in: %v", err)
		}
		row, err := p.db.Ent.User.Get(t.Context(), in.User.ID)
		if err != nil || strings.Contains(row.String(), who.Account) || strings.Contains(row.String(), who.DisplayName) || row.PasswordHash != "" {
			t.Errorf("row %v %v", row, err)
		}
		if notice := p.deliver(who.Account); notice.Subject != "Your account was deleted" {
			t.Errorf("notice %q", notice.Subject)
		}
		if left, err := p.db.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(in.User.ID)).Count(t.Context()); err != nil || left != 0 {
			t.Errorf("%d refused attempts are left, %v", left, err)
		}
		if n := p.addresses(); n != 0 {
			t.Errorf("%d addresses are left", n)
		}
		if again := p.register(who); again.User.ID == in.User.ID {
			t.Error("the address opens the deleted account")
		}
	})
}

func TestADeletionFindsTheRefusalsThatAreBeingWritten(t *testing.T) {
	t.Parallel()
	p := real(t).withMail()
	who := someone()
	in := p.register(who)
	deleted := make(chan error, 1)
	err := p.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := AwaitDeletions(ctx, tx); err != nil {
			return err
		}
		p.refusedIn(tx.RefusedAttempt.Create(), in.User.ID)
		go func() {
			me := &auth.Principal{UserID: in.User.ID, SessionID: in.Session, Role: auth.Customer}
			deleted <- p.Delete(t.Context(), me, DeleteInput{Password: who.Password, Language: locale.English, Addr: address(1)})
		}()
		for waits := 0; waits == 0; {
			if err := p.db.SQL.QueryRowContext(ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waits); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, <-deleted); err != nil {
		t.Fatal(err)
	}
	if left, err := p.db.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(in.User.ID)).Count(t.Context()); err != nil || left != 0 {
		t.Errorf("%d refused attempts are left, %v", left, err)
	}
}

// refused writes a refused attempt of a user.
func (f *fixture) refused(user id.User) { f.refusedIn(f.db.Ent.RefusedAttempt.Create(), user) }

func (f *fixture) refusedIn(create *ent.RefusedAttemptCreate, user id.User) {
	f.t.Helper()
	now := f.clock.Now()
	err := create.SetID(id.New[uuid.UUID]()).SetUserID(user).SetSaleID(id.New[id.Sale]()).SetItemID(id.Item{}).
		SetStage("ORDER").SetCode(string(fault.SoldOut)).SetTimes(1).SetFirstAt(now).SetLastAt(now).Exec(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
}

// order writes an unpaid order of a user.
func (f *fixture) order(user id.User) id.Order {
	f.t.Helper()
	orderID, now := id.New[id.Order](), f.clock.Now()
	err := f.db.WithTx(f.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Order.Create().SetID(orderID).SetNumber(orderID.String()[:32]).SetSaleID(id.New[id.Sale]()).SetItemID(id.New[id.Item]()).SetUserID(user).
			SetQuantity(1).SetUnitPriceMinor(100).SetCurrency("CNY").SetEpoch(1).SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return orderID
}

// enters writes an entry of a user in a draw.
func (f *fixture) enters(user id.User) id.Waitlist {
	f.t.Helper()
	entry, now := id.New[id.Waitlist](), f.clock.Now()
	err := f.db.Ent.WaitlistEntry.Create().SetID(entry).SetSaleID(id.New[id.Sale]()).SetItemID(id.New[id.Item]()).SetUserID(user).
		SetQuantity(1).SetStatus(waitlistentry.StatusENTERED).SetNonce("nonce").SetCreatedAt(now).SetUpdatedAt(now).Exec(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return entry
}

// moves changes the status of an entry.
func (f *fixture) moves(entry id.Waitlist, to waitlistentry.Status) {
	f.t.Helper()
	if err := f.db.Ent.WaitlistEntry.UpdateOneID(entry).SetStatus(to).Exec(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// Addresses with tags reach one mailbox.
func TestAMailboxGetsFewLinksThroughManyAddresses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		p := f.withMail()
		p.limited()
		name := strings.ReplaceAll(id.New[id.User]().String(), "-", "")
		for n := range 9 {
			who := someone()
			who.Account = fmt.Sprintf("%s+%d@gmail.com", name, n)
			if n%2 == 1 {
				who.Account = name[:n] + "." + name[n:] + "@googlemail.com"
			}
			in := p.register(who)
			err := p.forgot(who.Account)
			if err == nil {
				err = p.RequestEmail(t.Context(), p.principal(in.Tokens.Access), RequestEmailInput{Email: who.Account, Addr: address(1)})
			}
			if err != nil && fault.ReasonOf(err) != fault.TooManyTries {
				t.Fatal(err)
			}
		}
		if _, err := p.sender.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(p.server.Mails()); n != mailsPerMailbox.Burst {
			t.Errorf("%d links to one mailbox, want %d", n, mailsPerMailbox.Burst)
		}
	})
}
