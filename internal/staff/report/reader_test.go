package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/staff/report"
)

var shanghai = time.FixedZone("Asia/Shanghai", 8*3600)

// page returns the words of a report's page.
func (e *env) page(r *report.Report, reader report.Reader) string {
	e.t.Helper()
	var page bytes.Buffer
	e.must(r.HTML(&page, reader))
	text := regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page.String(), "")
	text = regexp.MustCompile(`aria-label="([^"]*)"`).ReplaceAllString(text, `> $1 <`)
	text = regexp.MustCompile(`(?s)<[^>]*>`).ReplaceAllString(text, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// log adds acts with the details that the operator service writes, and returns the number
// of the order that one is about.
func (e *env) log() string {
	e.t.Helper()
	users, err := e.db.Ent.User.Query().All(e.t.Context())
	e.must(err)
	who := map[string]id.User{}
	for _, u := range users {
		who[u.DisplayName] = u.ID
	}
	orders, err := e.db.Ent.Order.Query().First(e.t.Context())
	e.must(err)
	item, ann, carla := e.item.Public(), who["Ann"].Public(), who["Carla"].Public()
	line := func(by string, act sale.Act, note, details string, revision int64) error {
		return e.db.Ent.SaleLog.Create().SetID(id.New[uuid.UUID]()).SetSaleID(e.sale).SetActorID(who[by]).SetAct(string(act)).SetFromStatus("LIVE").SetToStatus("LIVE").
			SetRevision(revision).SetNote(note).SetDetails(details).SetCreatedAt(e.opens.Add(time.Minute)).Exec(e.t.Context())
	}
	e.must(errors.Join(
		line("Ann", sale.ActUpdate, "", `{"startsAt":"2026-11-20T12:00:00Z","hideExactStock":true,"paymentWindowSeconds":900,
			"items":[{"goods":"`+item+`","price":"499.00","stock":500,"purchaseLimit":1}],"newField":{"a":1}}`, 10),
		line("Carla", sale.ActAdjust, "补货", `{"units":5,"item":"`+item+`","requestedBy":"`+ann+`","requestNote":"到货","confirmedBy":"`+carla+`","confirmNote":"好"}`, 11),
		line("Carla", sale.ActVoid, "", `{"units":1,"order":"`+orders.ID.Public()+`"}`, 12),
		line("Carla", sale.ActSwitch, "", `{"captchaRequired":false,"captchaKinds":["MATH"],"limitPerSecond":0.5}`, 13),
	))
	return orders.Number
}

func TestAReportSpeaksTheLanguageAndShowsTheTimesOfItsReader(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	number := e.log()
	e.must(errors.Join(e.db.Ent.Sale.UpdateOneID(e.sale).SetTitle("双十一").Exec(t.Context()), e.db.Ent.Goods.Update().SetName("键盘").Exec(t.Context())))
	r := e.build()
	r.Earlier = &r.Summary
	english := e.page(r, report.Reader{})
	for _, want := range []string{"20 November 2026, 12:00:00", "Times are those of UTC", "Ann changed the draft", "Everything adds up", "How long buyers waited"} {
		if !strings.Contains(english, want) {
			t.Errorf("the English page lacks %q:\n%s", want, english)
		}
	}
	page := e.page(r, report.Reader{Language: locale.Chinese, Zone: shanghai})
	for _, want := range []string{"2026年11月20日 20:00:00", "时间按时区 Asia/Shanghai 显示", "账目一致", "买家等待时间", "Ann 修改了草稿", "进行中", "与往期专场对比"} {
		if !strings.Contains(page, want) {
			t.Errorf("the Chinese page lacks %q", want)
		}
	}
	// What is left in Latin letters are names, ids, the currency, the zone and a field of a newer release.
	left := page
	for _, known := range []string{"Ann", "Carla", r.SaleID, "CNY", "Asia/Shanghai", "newField", "fewer permits", number} {
		left = strings.ReplaceAll(left, known, "")
	}
	if words := regexp.MustCompile(`[A-Za-z]{3,}`).FindAllString(left, -1); len(words) > 0 {
		t.Errorf("English words on the Chinese page: %q in\n%s", words, left)
	}
}

func TestActsAreInWordsWithTheNamesOfThosePeople(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	number := e.log()
	page := e.page(e.build(), report.Reader{})
	for _, want := range []string{
		"Ann created the sale", "Opens 2026-11-20 12:00:00 Time to pay 15 min Hide exact stock yes Items Product Mechanical keyboard <75%>, Price 499.00, Stock 500",
		"Units +5 Requested by Ann Reason of the request 到货 Confirmed by Carla Remark 好", "Order " + number,
		"Captcha required no Captcha kinds Arithmetic Attempts per second on average 0.5",
	} {
		if !strings.Contains(strings.ReplaceAll(page, " Limit per person, all items 1,", ""), want) {
			t.Errorf("the page lacks %q:\n%s", want, page[strings.Index(page, "What operators"):])
		}
	}
	if strings.ContainsAny(page, "{}[]") || strings.Contains(page, "usr_") || strings.Contains(page, "itm_") || strings.Contains(page, "ord_") {
		t.Errorf("raw details are on the page: %s", page)
	}
}

func TestWaitingTimesAreThoseFromTheAcceptedAttemptToTheStoredOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		for i := range 100 {
			if _, err := e.order(ctx, tx, e.opens.Add(time.Duration(i)*time.Second), time.Duration(i+1)*10*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}))
	r := e.build()
	if r.Lag != (report.Lag{P50Ms: 500, P99Ms: 990, MaxMs: 1000}) {
		t.Errorf("waited %+v", r.Lag)
	}
	if page := e.page(r, report.Reader{}); !strings.Contains(page, "half of all within 500 ms, 99 of 100 within 990 ms, the slowest 1 s") {
		t.Errorf("the page does not have them: %s", page)
	}
}

func TestAReportIsComparedWithAnEarlierSale(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	earlier := e.earlier()
	r := e.build()
	e.must(e.src.Compare(t.Context(), r, earlier))
	want := report.Summary{
		SaleID: earlier.Public(), Title: "Last year", StartsAt: e.opens.AddDate(-1, 0, 0), Buyers: 2, Accepted: 3, Paid: 2,
		Net: "998.00", Currency: "CNY", SellThrough: 0.5, SoldOutMs: -1,
	}
	if r.Earlier == nil || *r.Earlier != want {
		t.Fatalf("earlier %+v, want %+v", r.Earlier, want)
	}
	if now := r.Summary; now.Buyers != stock+20 || now.Accepted != stock || now.Paid != stock-expiries || now.Net != "234530.00" || now.SellThrough != 0.94 {
		t.Errorf("now %+v", now)
	}
	page := e.page(r, report.Reader{})
	for _, row := range []string{
		"Figure This sale Last year", "Buyers 520 2", "Accepted attempts 500 3", "Paid orders 470 2", "Net value 234530.00 CNY 998.00 CNY", "Sell-through 94% 50%",
		" s not sold out",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page lacks %q:\n%s", row, page)
		}
	}
	var text strings.Builder
	e.must(r.Text(&text))
	if !strings.Contains(text.String(), "earlier    Last year: 2 buyers (now 520), 3 accepted, 2 paid, net 998.00 CNY, 50.0% sold (now 94.0%), sold out after never") {
		t.Errorf("text: %s", &text)
	}
	var out bytes.Buffer
	e.must(r.JSON(&out))
	var back struct{ Earlier report.Summary }
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Earlier != want {
		t.Errorf("JSON: %v %+v", err, back)
	}
	if err := e.src.Compare(t.Context(), r, id.Sale(uuid.New())); !errors.Is(err, report.ErrUnknownSale) {
		t.Errorf("an unknown sale: %v", err)
	}
}

// earlier writes a sale of the year before: two of four units were sold to two buyers, of
// whom one let an order expire before.
func (e *env) earlier() id.Sale {
	e.t.Helper()
	before, opens := *e, e.opens.AddDate(-1, 0, 0)
	before.sale, before.item, before.opens = id.New[id.Sale](), id.New[id.Item](), opens
	e = &before
	ctx := e.t.Context()
	goods, err := e.db.Ent.Goods.Query().FirstID(ctx)
	e.must(err)
	ann, err := e.db.Ent.User.Query().FirstID(ctx)
	e.must(err)
	e.must(e.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return errors.Join(
			tx.Sale.Create().SetID(e.sale).SetSlug("last-year").SetTitle("Last year").SetStatus(entsale.StatusENDED).SetStartsAt(opens).
				SetEndsAt(opens.Add(time.Hour)).SetPreheatAt(opens.Add(-time.Hour)).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetEpoch(1).
				SetCreatedAt(opens).SetCreatedBy(ann).Exec(ctx),
			tx.SaleItem.Create().SetID(e.item).SetSaleID(e.sale).SetGoodsID(goods).SetPosition(0).SetPriceMinor(49900).SetCurrency("CNY").
				SetTotal(4).SetAvailable(4).Exec(ctx),
			e.movement(ctx, tx, e.item.UUID(), "OPEN", 4, opens),
			sale.LogCreation(ctx, tx, sale.Change{ID: id.New[uuid.UUID](), Sale: e.sale, By: sale.Actor{ID: ann, Role: auth.Operator}, At: opens}),
		)
	}))
	again, other := id.New[id.User](), id.New[id.User]()
	take := func(user id.User, after time.Duration, to order.Status, code order.Code) {
		var o *order.Order
		e.must(e.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			o, err = e.orderOf(ctx, tx, user, opens.Add(after), 10*time.Millisecond)
			return err
		}))
		e.move(o, to, code, o.CreatedAt.Add(time.Minute))
		e.count.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond})
	}
	take(again, 0, order.Expired, order.CodeExpired)
	take(other, time.Second, order.Paid, order.CodePaid)
	take(again, 20*time.Minute, order.Paid, order.CodePaid)
	e.count.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond, Err: fault.Refused{Why: fault.PathInvalid}})
	e.must(e.count.Flush(ctx))
	return e.sale
}

// Names from right to left do not mix with the figures beside them.
func TestNamesFromRightToLeftAreIsolated(t *testing.T) {
	t.Parallel()
	const name = "هاتف ذكي 5G (أسود)"
	e := setup(t)
	e.rush()
	e.must(errors.Join(e.db.Ent.Sale.UpdateOneID(e.sale).SetTitle(name).Exec(t.Context()), e.db.Ent.Goods.Update().SetName(name).Exec(t.Context())))
	r := e.build()
	r.Earlier = &r.Summary
	var page strings.Builder
	e.must(r.HTML(&page, report.Reader{}))
	isolated := strings.Count(page.String(), `dir="auto">`+name) + strings.Count(page.String(), "\u2068"+name+"\u2069")
	if all := strings.Count(page.String(), name); all < 3 || isolated != all {
		t.Errorf("%d of %d names are isolated:\n%s", isolated, all, page.String())
	}
}
