package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// branch is a bank and a merchant that records the call-backs.
type branch struct {
	t        testing.TB
	db       *postgres.DB
	clock    *clock.Fake
	bank     *sandbox.Bank
	provider *sandbox.Provider
	courier  *sandbox.Courier
	merchant *httptest.Server
	answer   atomic.Int32 // status code of the merchant's replies
	mu       sync.Mutex
	heard    []payment.Event // guarded by mu
}

func open(t testing.TB) *branch {
	t.Helper()
	b := &branch{t: t, db: testdb.Postgres(t), clock: clock.NewFake(noon)}
	signer, err := sandbox.NewSigner([]byte("a key of the bank"))
	b.must(err)
	b.bank = sandbox.NewBank(b.db, b.clock)
	b.provider = sandbox.NewProvider(b.bank, "http://shop/sandbox", signer, b.clock)
	b.answer.Store(http.StatusOK)
	b.merchant = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		event, err := b.provider.Callback(r.Header, body)
		if err != nil {
			t.Errorf("call-back: %v", err)
		}
		b.mu.Lock()
		b.heard = append(b.heard, event)
		b.mu.Unlock()
		w.WriteHeader(int(b.answer.Load()))
	}))
	t.Cleanup(b.merchant.Close)
	b.courier = sandbox.NewCourier(b.bank, b.merchant.URL, signer, quiet)
	b.courier.Timeout = testenv.Wait
	t.Cleanup(b.courier.Close)
	return b
}

func (b *branch) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// charge opens a charge of 19.99 for ten minutes.
func (b *branch) charge() *sandbox.Charge {
	b.t.Helper()
	c, err := b.bank.Open(b.t.Context(), b.want(id.New[id.Payment]()))
	b.must(err)
	return c
}

func (b *branch) want(merchant id.Payment) sandbox.Charge {
	return sandbox.Charge{Merchant: merchant, Description: "Lamp · Order <1>", ReturnURL: "https://store.example/orders/1?a=b&c", AmountMinor: 1999, Currency: "EUR", ExpiresAt: b.clock.Now().Add(10 * time.Minute)}
}

func (b *branch) deliver(want int) {
	b.t.Helper()
	before := len(b.heard)
	if _, err := b.courier.Step(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	if got := len(b.heard) - before; got != want {
		b.t.Errorf("%d call-backs, want %d", got, want)
	}
}

func (b *branch) phase(c *sandbox.Charge) payment.Phase {
	b.t.Helper()
	state, err := b.provider.Query(b.t.Context(), known(c.Merchant))
	b.must(err)
	return state.Phase
}

func TestOneMerchantIDIsOneCharge(t *testing.T) {
	t.Parallel()
	b := open(t)
	merchant := id.New[id.Payment]()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := b.bank.Open(t.Context(), b.want(merchant)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := b.db.Ent.SandboxCharge.Query().CountX(t.Context()); n != 1 {
		t.Errorf("%d charges", n)
	}
	other := b.want(merchant)
	other.AmountMinor++
	if _, err := b.bank.Open(t.Context(), other); !errors.Is(err, sandbox.ErrMismatch) {
		t.Errorf("same id, other amount: %v", err)
	}
	if state, err := b.provider.Query(t.Context(), known(id.New[id.Payment]())); err != nil || state.Phase != payment.PhaseUnknown {
		t.Errorf("unknown charge: %+v, %v", state, err)
	}
}

func TestTheHabitsOfTheBank(t *testing.T) {
	t.Parallel()
	b := open(t)
	prompt, delayed, twice, late := b.charge(), b.charge(), b.charge(), b.charge()
	for habit, c := range map[sandbox.Habit]*sandbox.Charge{
		sandbox.Prompt: prompt, sandbox.Delayed: delayed, sandbox.Duplicate: twice, sandbox.Late: late,
	} {
		b.must(b.bank.Approve(t.Context(), c.ID, habit))
		if err := b.bank.Approve(t.Context(), c.ID, sandbox.Prompt); !errors.Is(err, sandbox.ErrNotOpen) {
			t.Errorf("%s approved again: %v", habit, err)
		}
	}
	b.deliver(2) // prompt, and the first of three
	b.deliver(1)
	b.deliver(1)
	b.deliver(0)
	b.clock.Advance(20 * time.Second)
	b.deliver(1) // delayed
	if state, err := b.provider.Close(t.Context(), known(late.Merchant)); err != nil || state.Phase != payment.PhaseClosed {
		t.Errorf("close late: %+v, %v", state, err)
	}
	b.clock.Advance(10*time.Minute + 5*time.Second)
	b.deliver(1) // late, even if closed
	if b.phase(late) != payment.PhasePaid {
		t.Errorf("late is %s", b.phase(late))
	}
	ids := map[string]int{}
	for _, e := range b.heard {
		ids[e.ID]++
		if e.Kind != payment.EventSucceeded || e.AmountMinor != 1999 || e.Currency != "EUR" || e.Transaction == "" {
			t.Errorf("event %+v", e)
		}
	}
	if len(ids) != 4 || len(b.heard) != 6 {
		t.Errorf("events %v", ids)
	}
}

func TestACallbackIsSentUntilItIsTaken(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.answer.Store(http.StatusServiceUnavailable)
	b.must(b.bank.Decline(t.Context(), b.charge().ID, "CARD_DECLINED"))
	b.deliver(1)
	b.deliver(0) // after a pause
	b.clock.Advance(time.Second)
	b.deliver(1)
	b.answer.Store(http.StatusOK)
	b.clock.Advance(5 * time.Second)
	b.deliver(1)
	b.clock.Advance(time.Hour)
	b.deliver(0)
	if b.heard[0].Kind != payment.EventDeclined || b.heard[0].ID != b.heard[2].ID {
		t.Errorf("events %+v", b.heard)
	}
}

func TestCouriersOfManyProcessesDeliverOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	for range 10 {
		b.must(b.bank.Approve(t.Context(), b.charge().ID, sandbox.Prompt))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := b.courier.Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(b.heard) != 10 {
		t.Errorf("%d call-backs", len(b.heard))
	}
}

func TestAClosedOrExpiredChargeCannotBeApproved(t *testing.T) {
	t.Parallel()
	b := open(t)
	closed, paid, expired := b.charge(), b.charge(), b.charge()
	b.must(b.bank.Approve(t.Context(), paid.ID, sandbox.Prompt))
	for c, want := range map[*sandbox.Charge]payment.Phase{closed: payment.PhaseClosed, paid: payment.PhasePaid} {
		for range 2 {
			if state, err := b.provider.Close(t.Context(), known(c.Merchant)); err != nil || state.Phase != want {
				t.Errorf("close: %+v, %v, want %s", state, err, want)
			}
		}
	}
	b.clock.Advance(10 * time.Minute)
	for _, c := range []*sandbox.Charge{closed, paid, expired} {
		if err := b.bank.Approve(t.Context(), c.ID, sandbox.Prompt); !errors.Is(err, sandbox.ErrNotOpen) {
			t.Errorf("approve: %v", err)
		}
	}
	if b.phase(expired) != payment.PhaseClosed {
		t.Errorf("expired is %s", b.phase(expired))
	}
}

func TestMoneyGoesBackOncePerRefundAndNeverMoreThanCame(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.charge()
	if err := b.bank.Refund(t.Context(), c.Merchant, id.New[id.Refund](), 1); !errors.Is(err, sandbox.ErrTooMuch) {
		t.Errorf("refund of an unpaid charge: %v", err)
	}
	b.must(b.bank.Approve(t.Context(), c.ID, sandbox.Prompt))
	refund := id.New[id.Refund]()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := b.bank.Refund(t.Context(), c.Merchant, refund, 1500); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := b.bank.Refund(t.Context(), c.Merchant, id.New[id.Refund](), 500); !errors.Is(err, sandbox.ErrTooMuch) {
		t.Errorf("refund of more than came: %v", err)
	}
	if err := b.bank.Refund(t.Context(), c.Merchant, refund, 1499); !errors.Is(err, sandbox.ErrMismatch) {
		t.Errorf("same refund, other amount: %v", err)
	}
	b.must(b.bank.Refund(t.Context(), c.Merchant, id.New[id.Refund](), 499))
	now, err := b.bank.Charge(t.Context(), c.ID)
	if err != nil || now.Refunded != 1999 {
		t.Errorf("charge %+v, %v", now, err)
	}
}

// A process of the former release writes refunds and call-backs to tables of their own.
func TestBankKeepsRefundsAndCallbacksOfTheFormerRelease(t *testing.T) {
	t.Parallel()
	b := open(t)
	c, refunds := b.charge(), []id.Refund{id.New[id.Refund](), id.New[id.Refund]()}
	b.must(b.bank.Approve(t.Context(), c.ID, sandbox.Prompt))
	b.deliver(1)
	for i, refund := range refunds {
		_, err := b.db.SQL.ExecContext(t.Context(), `WITH charge AS (UPDATE sandbox_charges SET refunded_minor = refunded_minor + 500 WHERE id = $1)
			INSERT INTO sandbox_refunds (id, merchant_refund, charge_id, amount_minor, created_at) VALUES ($2, $3, $1, 500, $4)`,
			c.ID, id.New[uuid.UUID](), refund, noon.Add(time.Duration(i)))
		b.must(err)
	}
	for _, refund := range append(refunds, id.New[id.Refund]()) {
		b.must(b.bank.Refund(t.Context(), c.Merchant, refund, 500))
	}
	if now, err := b.bank.Charge(t.Context(), c.ID); err != nil || now.Refunded != 1500 {
		t.Errorf("after two repeated refunds and another one: %+v, %v, want 1500", now, err)
	}
	_, err := b.db.SQL.ExecContext(t.Context(), `INSERT INTO sandbox_calls (id, charge_id, body, times, due_at, created_at)
		SELECT $1, id, call, 2, $2, $2 FROM sandbox_charges WHERE id = $3`, id.New[uuid.UUID](), noon, c.ID)
	b.must(err)
	b.deliver(1)
	b.deliver(1)
	b.deliver(0)
}

func TestThePageLetsThePayerDecide(t *testing.T) {
	t.Parallel()
	b := open(t)
	server := httptest.NewServer(sandbox.NewPages(b.bank, "http://shop/sandbox", quiet).Handler())
	t.Cleanup(server.Close)
	c := b.charge()
	page := server.URL + "/sandbox/pay/" + c.ID.String()
	status, text := b.get(server, http.MethodGet, page)
	for _, part := range []string{"EUR 19.99", "&lt;1&gt;", "qr.png", "/approve", "/decline", "/delay", "/duplicate", "/late"} {
		if !strings.Contains(text, part) {
			t.Errorf("%d, no %q in\n%s", status, part, text)
		}
	}
	if status, png := b.get(server, http.MethodGet, page+"/qr.png"); status != 200 || !strings.HasPrefix(png, "\x89PNG") {
		t.Errorf("qr: %d", status)
	}
	for _, name := range []string{"page.css", "page.js"} {
		if status, _ := b.get(server, http.MethodGet, server.URL+"/sandbox/"+name); status != 200 {
			t.Errorf("%s: %d", name, status)
		}
	}
	for _, path := range []string{"/sandbox/pay/" + id.New[uuid.UUID]().String(), "/sandbox/pay/x", "/sandbox/pay/" + c.ID.String() + "/steal"} {
		if status, _ := b.get(server, http.MethodPost, server.URL+path); status != 404 && status != 405 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if b.phase(c) != payment.PhaseOpen {
		t.Errorf("looking at it made it %s", b.phase(c))
	}
	if status, text := b.get(server, http.MethodPost, page+"/approve"); status != 200 || !strings.Contains(text, "Paid.") {
		t.Errorf("approve: %d\n%s", status, text)
	}
	if status, text := b.get(server, http.MethodPost, page+"/decline"); status != 200 || !strings.Contains(text, "Paid.") {
		t.Errorf("decline what is paid: %d\n%s", status, text)
	}
	if _, text := b.get(server, http.MethodGet, page+"?to=https://evil.example"); !strings.Contains(text, `<a href="https://store.example/orders/1?a=b&amp;c">Back to the order`) || strings.Contains(text, "evil") {
		t.Errorf("no way back after the payment:\n%s", text)
	}
	declined := b.charge()
	if _, text := b.get(server, http.MethodPost, server.URL+"/sandbox/pay/"+declined.ID.String()+"/decline"); !strings.Contains(text, "Declined.") {
		t.Errorf("decline:\n%s", text)
	}
}

func TestThePageIsInTheLanguageOfItsVisitor(t *testing.T) {
	t.Parallel()
	b := open(t)
	pages := sandbox.NewPages(b.bank, "http://shop/sandbox", quiet).Handler()
	c := b.charge()
	for accept, want := range map[string][]string{
		"": {`lang="en"`, "<bdi>Lamp · Order &lt;1&gt;</bdi>", "Approve"}, "de": {`lang="en"`}, "en-GB,zh;q=0.5": {`lang="en"`},
		"zh-CN,zh;q=0.9,en;q=0.8": {`lang="zh-CN"`, "同意支付", "拒绝支付", "测试银行"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sandbox/pay/"+c.ID.String(), nil)
		r.Header.Set("Accept-Language", accept)
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		for _, part := range want {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%q: no %q in\n%s", accept, part, w.Body)
			}
		}
		if strings.HasPrefix(accept, "zh") && strings.Contains(w.Body.String(), "Approve") {
			t.Errorf("English words on the Chinese page:\n%s", w.Body)
		}
	}
	want := b.want(id.New[id.Payment]())
	want.Language = "zh"
	own, err := b.bank.Open(t.Context(), want)
	b.must(err)
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sandbox/pay/"+own.ID.String(), nil))
	if !strings.Contains(w.Body.String(), `lang="zh-CN"`) {
		t.Errorf("the page of a payment that was begun in Chinese:\n%s", w.Body)
	}
}

func (b *branch) get(server *httptest.Server, method, url string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, url, nil)
	b.must(err)
	res, err := server.Client().Do(req)
	b.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.must(err)
	return res.StatusCode, string(body)
}

func TestSignersNeedKeysThatCannotBeGuessed(t *testing.T) {
	t.Parallel()
	long := []byte("sixteen bytes ok")
	for _, keys := range [][][]byte{nil, {nil}, {[]byte("short")}, {long, []byte("short")}, {long, long, long}} {
		if _, err := sandbox.NewSigner(keys...); err == nil {
			t.Errorf("keys %q were taken", keys)
		}
	}
}

func FuzzVerify(f *testing.F) {
	signer, err := sandbox.NewSigner([]byte("a key of the bank"))
	if err != nil {
		f.Fatal(err)
	}
	good := signer.Sign([]byte("body"), noon)
	for _, seed := range []string{good, "", "t=1,v1=00", "t=,v1=", "v1=00,t=1", strings.ToUpper(good)} {
		f.Add(seed, []byte("body"))
	}
	f.Add(good, []byte("bodY"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		err := signer.Verify(header, body, noon)
		if err == nil {
			var seconds int64
			if _, scan := fmt.Sscanf(header, "t=%d,", &seconds); scan != nil || !strings.EqualFold(header, signer.Sign(body, time.Unix(seconds, 0))) {
				t.Errorf("header %q was taken for %q", header, body)
			}
		}
		if err != nil && !errors.Is(err, payment.ErrForged) {
			t.Errorf("error %v", err)
		}
	})
}

var _ payment.Provider = (*sandbox.Provider)(nil)

func known(merchant id.Payment) payment.Known {
	return payment.Known{CreateInput: payment.CreateInput{Payment: merchant}}
}
