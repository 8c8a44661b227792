package notice_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"seckill/ent"
	"seckill/ent/order"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/mail"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	shop    = "https://shop.example"
	window  = 15 * time.Minute
	ahead   = 3 * time.Minute
	opening = 10 * time.Minute
	address = "ann@example.com"
)

// env is a database with a sale and a user, the notices, and a mail server.
type env struct {
	*testing.T

	db      *postgres.DB
	clock   *clock.Fake
	mails   *mail.Outbox
	outbox  *notice.Outbox
	notices *notice.Service
	sender  *mail.Sender
	server  *testenv.MailServer
	web     *notice.Web // nil = no push

	admissions notice.Admissions

	sale   id.Sale
	item   id.Item
	user   id.User
	opens  time.Time
	orders int
}

func onBoth(t *testing.T, test func(e *env)) {
	t.Helper()
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) { test(setup(t, db)) })
}

func setup(t *testing.T, db *postgres.DB) *env {
	t.Helper()
	e := &env{
		T: t, db: db, clock: clock.NewFake(time.Now().Truncate(time.Millisecond)), server: testenv.NewMailServer(t),
		sale: id.New[id.Sale](), item: id.New[id.Item](), user: id.New[id.User](),
	}
	e.mails = mail.NewOutbox(testenv.Keys(t), e.clock)
	e.outbox = notice.NewOutbox(ahead, true)
	e.notices = e.service(nil)
	var err error
	e.sender, err = mail.NewSender(mail.Config{
		DB: db, Keys: testenv.Keys(t), Shop: shop, TLS: e.server.TLS, Subjects: notice.Subjects{DB: db}, Clock: e.clock,
		Log:    slog.New(slog.DiscardHandler),
		Server: &config.SMTP{Host: e.server.Host, Port: e.server.Port, User: testenv.MailUser, Password: testenv.MailPassword, From: "The Shop <shop@shop.example>"},
	})
	e.must(err)
	e.opens = e.clock.Now().Add(time.Hour)
	e.tx(e.catalogue)
	return e
}

// service returns the notices of another process. hook is the operator's service on this
// host; nil = none.
func (e *env) service(hook *notice.Target) *notice.Service {
	e.Helper()
	s, err := notice.New(notice.Config{
		DB: e.db, Keys: testenv.Keys(e.T), Mail: e.mails, Hook: hook, Web: e.web, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Opening: opening, Shop: shop, Clock: e.clock, Log: slog.New(slog.DiscardHandler), Admissions: &e.admissions,
	})
	e.must(err)
	return s
}

func (e *env) catalogue(ctx context.Context, tx *ent.Tx) error {
	now, goods := e.clock.Now(), id.New[id.Goods]()
	return errors.Join(
		tx.Goods.Create().SetID(goods).SetName("Kettle").SetListPriceMinor(9900).SetCurrency("CNY").SetCreatedAt(now).Exec(ctx),
		tx.Sale.Create().SetID(e.sale).SetSlug("spring").SetTitle("Spring sale").SetStatus("APPROVED").SetStartsAt(e.opens).SetEndsAt(e.opens.Add(time.Hour)).
			SetPreheatAt(now).SetPaymentWindowSeconds(int(window.Seconds())).SetPurchaseLimit(1).SetCreatedAt(now).Exec(ctx),
		tx.SaleItem.Create().SetID(e.item).SetSaleID(e.sale).SetGoodsID(goods).SetPosition(0).SetPriceMinor(4900).SetCurrency("CNY").
			SetTotal(9).SetAvailable(9).Exec(ctx),
		tx.User.Create().SetID(e.user).SetAccount(address).SetDisplayName("Ann").SetPasswordHash("x").SetLanguage("en").
			SetVerifiedAt(now).SetCreatedAt(now).Exec(ctx),
	)
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) tx(do func(context.Context, *ent.Tx) error) {
	e.Helper()
	e.must(e.db.WithTx(e.Context(), do))
}

// order places an order of the user, with its facts in the same transaction.
func (e *env) order() id.Order {
	e.Helper()
	orderID, now := id.New[id.Order](), e.clock.Now()
	e.orders++
	e.tx(func(ctx context.Context, tx *ent.Tx) error {
		return errors.Join(
			tx.Order.Create().SetID(orderID).SetNumber("N-"+orderID.String()[24:]).SetSaleID(e.sale).SetItemID(e.item).SetUserID(e.user).SetQuantity(1).
				SetUnitPriceMinor(4900).SetCurrency("CNY").SetEpoch(1).SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).
				SetPaymentDeadline(now.Add(window)).Exec(ctx),
			e.outbox.OrdersPlaced(ctx, tx, []notice.Placed{{Order: orderID, User: e.user, At: now, Deadline: now.Add(window)}}),
		)
	})
	return orderID
}

func (e *env) pay(orderID id.Order) {
	e.Helper()
	e.must(e.db.Ent.Order.Update().Where(order.ID(orderID)).SetStatus(order.StatusPAID).Exec(e.Context()))
}

// offer offers a unit to the user on the waitlist.
func (e *env) offer() id.Waitlist {
	e.Helper()
	entry, now := id.New[id.Waitlist](), e.clock.Now()
	e.tx(func(ctx context.Context, tx *ent.Tx) error {
		return errors.Join(
			tx.WaitlistEntry.Create().SetID(entry).SetSaleID(e.sale).SetItemID(e.item).SetUserID(e.user).SetQuantity(1).
				SetStatus(waitlistentry.StatusOFFERED).SetOfferExpiresAt(now.Add(time.Minute)).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx),
			e.outbox.Offered(ctx, tx, notice.Offer{Entry: entry, User: e.user, At: now, Until: now.Add(time.Minute)}),
		)
	})
	return entry
}

// step lets the loops run once, and returns the subjects of the e-mails that arrived since.
func (e *env) step() []string {
	e.Helper()
	before := len(e.server.Mails())
	_, err := e.notices.Collect(e.Context())
	e.must(err)
	_, err = e.sender.Step(e.Context())
	e.must(err)
	var subjects []string
	for _, m := range e.server.Mails()[before:] {
		subjects = append(subjects, m.Subject)
	}
	return subjects
}

// last returns the newest e-mail.
func (e *env) last() testenv.Mail {
	e.Helper()
	mails := e.server.Mails()
	if len(mails) == 0 {
		e.Fatal("no e-mail arrived")
	}
	return mails[len(mails)-1]
}

func (e *env) choose(choices ...notice.Choice) {
	e.Helper()
	e.must(e.notices.Choose(e.Context(), e.user, choices))
}

// has fails the test unless subjects has one subject with a text, or none if the text is "".
func (e *env) has(subjects []string, text string) {
	e.Helper()
	if text == "" && len(subjects) > 0 || text != "" && (len(subjects) != 1 || !strings.Contains(subjects[0], text)) {
		e.Errorf("e-mails %q, want %q", subjects, text)
	}
}
