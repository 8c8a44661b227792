package sale

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// termsVersion is the version of the JSON of Terms: it grows with a change after which a
// former release reads it wrongly.
const termsVersion = 1

// Terms are what buyers see of a sale before they buy. The fields have their names in the
// log, and the order of a page.
type Terms struct {
	Version         int           `json:"version"`
	Title           string        `json:"title"`
	Rules           string        `json:"rules"`
	StartsAt        time.Time     `json:"startsAt"`
	EndsAt          time.Time     `json:"endsAt"`
	PaymentWindow   int           `json:"paymentWindowSeconds"`
	PurchaseLimit   int           `json:"purchaseLimit"` // over all items; 0 = no limit
	LimitBy         []person.Kind `json:"limitBy"`
	Access          []string      `json:"access,omitempty"` // in the form of access.Rule.String
	Draw            string        `json:"draw,omitempty"`   // in the form of DrawRules.String
	HideExactStock  bool          `json:"hideExactStock"`
	Private         bool          `json:"private,omitempty"`
	RequiresAddress bool          `json:"requiresAddress"`
	VerifiedContact bool          `json:"requireVerifiedContact"`
	AccountAge      int           `json:"minimumAccountAge"` // hours
	CaptchaRequired bool          `json:"captchaRequired"`
	CaptchaKinds    []string      `json:"captchaKinds"` // empty = every kind
	Accent          string        `json:"accent"`
	Items           []ItemTerms   `json:"items"`
}

// ItemTerms are what buyers see of an item.
type ItemTerms struct {
	Item          string `json:"item"`  // public id
	Goods         string `json:"goods"` // public id
	Name          string `json:"name"`
	Description   string `json:"description"`
	Picture       string `json:"imageUrl"` // see PictureName
	ImageAlt      string `json:"imageAlt"`
	ListPrice     string `json:"listPrice"`
	Price         string `json:"price"`
	Currency      string `json:"currency"`
	Stock         int    `json:"stock"`
	PurchaseLimit int    `json:"purchaseLimit"`
}

// TermsOf returns what buyers see of a sale.
func TermsOf(v *Sale) Terms {
	t := Terms{
		Version: termsVersion, Title: v.Title, Rules: v.Rules, StartsAt: v.StartsAt.UTC(), EndsAt: v.EndsAt.UTC(),
		PaymentWindow: int(v.PaymentWindow / time.Second), PurchaseLimit: v.PurchaseLimit, LimitBy: v.LimitBy.Kinds(),
		Access:         v.Access.Texts(),
		HideExactStock: v.HideExactStock, Private: v.Private, RequiresAddress: v.RequiresAddress,
		VerifiedContact: v.Requires.VerifiedContact, AccountAge: int(v.Requires.AccountAge / time.Hour),
		CaptchaRequired: v.Switches.CaptchaRequired, CaptchaKinds: append([]string{}, v.Switches.CaptchaKinds...),
		Accent: v.Accent.Color,
		Items:  make([]ItemTerms, len(v.Items)),
	}
	if v.Draw.On() {
		t.Draw = v.Draw.String()
	}
	for i, item := range v.Items {
		t.Items[i] = ItemTerms{
			Item: item.ID.Public(), Goods: item.Goods.ID.Public(), Name: item.Goods.Name, Description: item.Goods.Description,
			Picture: PictureName(item.Goods.ImageURL), ImageAlt: item.Goods.ImageAlt,
			ListPrice: item.Goods.ListPrice.Decimal(), Price: item.Price.Decimal(), Currency: item.Price.Currency,
			Stock: item.Total, PurchaseLimit: item.PurchaseLimit,
		}
	}
	return t
}

// JSON returns the stored form and its SHA-256 in hexadecimal.
func (t Terms) JSON() (text, hash string, err error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return "", "", fmt.Errorf("terms of a sale: %w", err)
	}
	return string(raw), hashOf(raw), nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// maxPictureName is the length of the longest address of a picture that is stored as it is;
// of a longer one, a picture in its address, a part and the hash are.
const maxPictureName = 256

// PictureName returns the name of a picture in logs; "" = none.
func PictureName(address *string) string {
	switch {
	case address == nil:
		return ""
	case len(*address) > maxPictureName:
		return (*address)[:64] + "… SHA-256 " + hashOf([]byte(*address))
	}
	return *address
}

// Approval is what was approved of a sale.
type Approval struct {
	Sale id.Sale
	By   id.User
	At   time.Time
	Hash string // SHA-256 of the stored terms, in hexadecimal
	text string // JSON of Terms
}

// WriteApproval stores what is approved of a sale, in the transaction of the approval.
//
//nolint:revive // a row in the caller's transaction
func WriteApproval(ctx context.Context, tx *ent.Tx, of id.Sale, by id.User, terms string, at time.Time) error {
	return tx.SaleApproval.Create().SetID(of).SetApprovedBy(by).SetTerms(terms).SetCreatedAt(at).Exec(ctx)
}

// Approval returns what was approved of a sale; nil = it was not, or by a former release.
func (s *Store) Approval(ctx context.Context, of id.Sale) (*Approval, error) {
	row, err := s.db.SaleApproval.Get(ctx, of)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the approval of sale %s: %w", of, err)
	}
	return &Approval{Sale: of, By: row.ApprovedBy, At: row.CreatedAt.UTC(), Hash: hashOf([]byte(row.Terms)),
		text: row.Terms}, nil
}

// Term is a value that buyers see, when it was approved and now.
type Term struct {
	Goods    id.Goods // of the item that it is about; zero = the sale
	Name     string
	Kind     ValueKind
	Approved *string // in the form of Kind; nil = there was none
	Now      *string
}

// Changed reports whether the value is another one than that which was approved.
func (t Term) Changed() bool {
	return (t.Approved == nil) != (t.Now == nil) || t.Approved != nil && *t.Approved != *t.Now
}

// Compare returns what was approved beside what buyers see of the sale now.
func (a *Approval) Compare(v *Sale) ([]Term, error) {
	now, _, err := TermsOf(v).JSON()
	if err != nil {
		return nil, err
	}
	var then, present document
	if err := then.read(a.text); err != nil {
		return nil, fmt.Errorf("read what was approved of sale %s: %w", a.Sale, err)
	}
	if err := present.read(now); err != nil {
		return nil, err
	}
	terms := compareFields(id.Goods{}, then.sale, present.sale)
	for _, item := range append(present.order, then.order...) {
		was, is := then.items[item], present.items[item]
		if was == nil && is == nil {
			continue // compared already
		}
		named := is
		if named == nil {
			named = was
		}
		goods, _ := id.ParseGoods(plain(named["goods"]))
		terms = append(terms, compareFields(goods, was, is)...)
		delete(then.items, item)
		delete(present.items, item)
	}
	return terms, nil
}

// fields are the values of an object by name.
type fields map[string]json.RawMessage

// document is the JSON of Terms, whose fields another release may have written.
type document struct {
	sale  fields
	order []string // ids of the items
	items map[string]fields
}

func (d *document) read(text string) error {
	if err := json.Unmarshal([]byte(text), &d.sale); err != nil {
		return err
	}
	var items []fields
	if err := json.Unmarshal(d.sale["items"], &items); err != nil {
		return err
	}
	delete(d.sale, "items")
	delete(d.sale, "version")
	d.items = make(map[string]fields, len(items))
	for _, item := range items {
		name := plain(item["item"])
		delete(item, "item")
		d.order, d.items[name] = append(d.order, name), item
	}
	return nil
}

// termOrder are the names of Terms and ItemTerms in the order of a page.
var termOrder = []string{
	"title", "rules", "startsAt", "endsAt", "paymentWindowSeconds", "purchaseLimit", "limitBy", "access", "draw",
	"hideExactStock", "private", "requiresAddress",
	"requireVerifiedContact", "minimumAccountAge", "captchaRequired", "captchaKinds", "accent",
	"name", "description", "imageUrl", "imageAlt", "price", "listPrice", "currency", "stock",
}

func compareFields(goods id.Goods, then, now fields) (terms []Term) {
	for _, name := range termOrder {
		was, before := then[name]
		is, after := now[name]
		if !before && !after {
			continue
		}
		term := Term{Goods: goods, Name: name}
		if before {
			text := plain(was)
			term.Approved, term.Kind = &text, kindOf(name, was)
		}
		if after {
			text := plain(is)
			term.Now, term.Kind = &text, kindOf(name, is)
		}
		terms = append(terms, term)
	}
	return terms
}
