package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	entorder "seckill/ent/order"
	"seckill/ent/user"
	"seckill/internal/id"
	"seckill/internal/locale"
	"seckill/internal/sale"
)

// maxActs limits the operations in a report.
const maxActs = 500

// did are the acts in words; the subject is the actor.
var did = map[sale.Act]string{
	sale.ActCreate: "created the sale", sale.ActUpdate: "changed the draft", sale.ActSubmit: "submitted it for approval",
	sale.ActApprove: "approved it", sale.ActReject: "sent it back", sale.ActWithdraw: "took it back from approval",
	sale.ActDiscard: "discarded the draft", sale.ActSchedule: "set its times", sale.ActPreheat: "loaded it", sale.ActOpen: "opened it",
	sale.ActPause: "paused it", sale.ActResume: "resumed it", sale.ActEnd: "ended it", sale.ActCancel: "cancelled it",
	sale.ActSettle: "settled it", sale.ActRebuild: "rebuilt its gates", sale.ActAdjust: "changed its stock",
	sale.ActVoid: "voided an order", sale.ActExpire: "expired an unpaid order", sale.ActSwitch: "changed its access controls",
	sale.ActExtend: "extended it", sale.ActDescribe: "changed its title or rules",
	"REQUEST_ADJUST_STOCK": "asked for a change of stock", "REQUEST_VOID_ORDER": "asked to void an order",
	"REQUEST_EXTEND_SALE": "asked to extend it", // these three are of the live feed
}

// Did returns an act in words; units are those that it put on sale, below 0 took off sale.
func Did(in locale.Language, act sale.Act, units int) string {
	w := Reader{Language: in}.words()
	switch {
	case act == sale.ActAdjust && units > 0:
		return w.say("put %d units on sale", units)
	case act == sale.ActAdjust && units < 0:
		return w.say("took %d units off sale", -units)
	}
	return w.say(did[act])
}

// statuses are the states of a sale in words.
var statuses = map[sale.Status]string{
	sale.Draft: "Draft", sale.PendingApproval: "In review", sale.Approved: "Approved", sale.Rejected: "Rejected", sale.Scheduled: "Scheduled",
	sale.Preheated: "Preloaded", sale.Live: "Live", sale.Paused: "Paused", sale.Ended: "Ended", sale.Cancelled: "Cancelled",
}

// State returns the state of a sale in words.
func State(in locale.Language, status sale.Status) string {
	return Reader{Language: in}.words().say(statuses[status])
}

// field is one field of an act's details, in the order of the page.
type field struct{ name, label string }

var fields = []field{
	{"title", "Title"}, {"slug", "Address"}, {"rules", "Rules"}, {"startsAt", "Opens"}, {"endsAt", "Ends"}, {"preheatAt", "Preload"},
	{"paymentWindowSeconds", "Time to pay"}, {"purchaseLimit", "Limit per person, all items"}, {"hideExactStock", "Hide exact stock"},
	{"requiresAddress", "Delivery address"}, {"requireVerifiedContact", "Verified contact"}, {"minimumAccountAge", "Hours of account age"},
	{"accent", "Accent colour"}, {"items", "Items"}, {"captchaRequired", "Captcha required"}, {"captchaKinds", "Captcha kinds"},
	{"proofOfWorkMax", "Proof-of-work difficulty"}, {"permitPerMille", "Permits per available unit"},
	{"inflowPerSecond", "Admitted buyers per second"}, {"limitBurst", "Attempts at once"}, {"limitPerSecond", "Attempts per second"},
	{"item", "Item"}, {"units", "Units"}, {"order", "Order"}, {"requestedBy", "Requested by"}, {"requestNote", "Reason of the request"},
	{"confirmedBy", "Confirmed by"}, {"confirmNote", "Remark"}, {"goods", "Product"}, {"price", "Price"}, {"stock", "Stock"},
}

// kinds are the kinds of captchas in words.
var kinds = map[string]string{"TEXT": "Characters", "MATH": "Arithmetic", "PROOF_OF_WORK": "Proof of work", "EXTERNAL": "External check"}

// change of a field, for the page.
type fieldChange struct{ Label, Value string }

// changesOf returns the details of an act in words; none where they cannot be parsed.
func (r *Report) changesOf(w words, details string) []fieldChange {
	var values map[string]any
	if details == "" || json.Unmarshal([]byte(details), &values) != nil {
		return nil
	}
	former, _ := values[sale.FormerValues].(map[string]any)
	delete(values, sale.FormerValues)
	var out []fieldChange
	for _, f := range ordered(values) {
		text := r.value(w, f.name, values[f.name])
		if old, ok := former[f.name]; ok {
			text = r.value(w, f.name, old) + " → " + text
		}
		out = append(out, fieldChange{w.say(f.label), text})
	}
	return out
}

// ordered returns the fields of an object: the known ones in the order of the page, then
// the others by name.
func ordered(values map[string]any) []field {
	var known, others []field
	for _, f := range fields {
		if _, ok := values[f.name]; ok {
			known = append(known, f)
		}
	}
	for name := range values {
		if !slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			others = append(others, field{name, name})
		}
	}
	slices.SortFunc(others, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return append(known, others...)
}

// value returns the value of a field in words.
func (r *Report) value(w words, name string, value any) string {
	switch v := value.(type) {
	case nil:
		return w.say("nothing")
	case bool:
		if v {
			return w.say("yes")
		}
		return w.say("no")
	case float64:
		return w.number(name, v)
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return w.at(at)
		}
		if known, ok := r.names[v]; ok {
			return known
		}
		return w.say(cmp.Or(kinds[v], v, "nothing"))
	case []any:
		if len(v) == 0 && name == "captchaKinds" {
			return w.say("all")
		}
		return joined(v, "; ", func(each any) string { return r.value(w, "", each) })
	case map[string]any:
		return joined(ordered(v), ", ", func(f field) string { return w.say(f.label) + " " + r.value(w, f.name, v[f.name]) })
	}
	return fmt.Sprint(value)
}

func joined[T any](list []T, by string, text func(T) string) string {
	parts := make([]string, len(list))
	for i, each := range list {
		parts[i] = text(each)
	}
	return strings.Join(parts, by)
}

// number returns a number in the unit of its field.
func (w words) number(name string, v float64) string {
	switch {
	case name == "paymentWindowSeconds":
		return w.lasts(v * 1000)
	case name == "permitPerMille":
		v /= 1000
	case name == "units" && v > 0:
		return "+" + grouped(int64(v))
	case v == float64(int64(v)):
		return grouped(int64(v))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// addActs adds the operations of a sale, the oldest first, and the names of what their
// details point at.
func (src Source) addActs(ctx context.Context, r *Report, v *sale.Sale) error {
	lines, err := src.Sales.Log(ctx, v.ID, maxActs)
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	r.names = map[string]string{}
	for _, item := range v.Items {
		if item.Goods != nil {
			r.names[id.Format(id.Item, item.ID)], r.names[id.Format(id.Goods, item.Goods.ID)] = item.Goods.Name, item.Goods.Name
		}
	}
	if err := src.nameIDs(ctx, r, lines); err != nil {
		return err
	}
	r.Acts = make([]Act, 0, len(lines))
	for _, l := range lines {
		a := Act{At: l.At, Act: string(l.Act), From: string(l.From), To: string(l.To), Note: l.Note, Detail: l.Details, Name: "the clock"}
		if l.Actor != nil {
			a.Actor = id.Format(id.User, *l.Actor)
			a.Name = cmp.Or(r.names[a.Actor], a.Actor)
		}
		r.Acts = append(r.Acts, a)
	}
	return nil
}

// nameIDs reads the names of users and the numbers of orders in a log.
func (src Source) nameIDs(ctx context.Context, r *Report, lines []sale.LogLine) error {
	var users, orders []uuid.UUID
	for _, l := range lines {
		if l.Actor != nil {
			users = append(users, *l.Actor)
		}
		var d struct{ Order, RequestedBy, ConfirmedBy string }
		if json.Unmarshal([]byte(cmp.Or(l.Details, "{}")), &d) != nil {
			continue
		}
		if u, err := id.Parse(id.Order, d.Order); err == nil {
			orders = append(orders, u)
		}
		for _, name := range []string{d.RequestedBy, d.ConfirmedBy} {
			if u, err := id.Parse(id.User, name); err == nil {
				users = append(users, u)
			}
		}
	}
	people, err := src.DB.Ent.User.Query().Where(user.IDIn(users...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read operators: %w", err)
	}
	for _, u := range people {
		r.names[id.Format(id.User, u.ID)] = u.DisplayName
	}
	rows, err := src.DB.Ent.Order.Query().Where(entorder.IDIn(orders...)).Select(entorder.FieldID, entorder.FieldNumber).All(ctx)
	if err != nil {
		return fmt.Errorf("read orders of acts: %w", err)
	}
	for _, o := range rows {
		r.names[id.Format(id.Order, o.ID)] = o.Number
	}
	return nil
}
