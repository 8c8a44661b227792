package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// alone are the changes of an approved sale and of its products that one person makes: those
// that buyers do not mind, and the switches that keep a crowd or programs off. A change of
// another field needs a second person. Stock and the end of a loaded sale have bounds of
// their own (checkAlone, checkAloneExtension).
var alone = map[string]func(before, now any) bool{
	"accent":          always,
	"preheatAt":       always,
	"externalId":      always,
	"sku":             always,
	"proofOfWorkMax":  always,
	"permitRatio":     always,
	"reviewAccounts":  always,
	"inflowPerSecond": always,
	"limitBurst":      always,
	"limitPerSecond":  always,
	"captchaRequired": func(_, now any) bool { return now == true },
	"captchaKinds":    moreKinds,
}

func always(_, _ any) bool { return true }

// moreKinds reports whether buyers keep all kinds of captcha; an empty list is all kinds.
func moreKinds(before, now any) bool {
	was, is := before.([]string), now.([]string)
	if len(is) == 0 {
		return true
	}
	return len(was) > 0 && !slices.ContainsFunc(was, func(kind string) bool { return !slices.Contains(is, kind) })
}

// minded reports whether a change of what was approved needs a second person.
func (c changes) minded() bool {
	old, _ := c[sale.FormerValues].(changes)
	for field, now := range c {
		if field == sale.FormerValues {
			continue
		}
		allowed, known := alone[field]
		if !known || !allowed(old[field], now) {
			return true
		}
	}
	return false
}

// storedChangeVersion is the version of the JSON of a storedChange.
const storedChangeVersion = 1

// storedChange is a change that waits for a second person: one of the inputs, and what it
// changed when it was requested.
type storedChange struct {
	Version  int             `json:"version"`
	Texts    *textChange     `json:"texts,omitempty"`
	Times    *timeChange     `json:"times,omitempty"`
	Switches *SwitchesPatch  `json:"switches,omitempty"`
	Goods    *goodsChange    `json:"goods,omitempty"`
	Value    *drawValue      `json:"value,omitempty"`
	Changed  json.RawMessage `json:"changed"` // as in the log
}

type textChange struct {
	Title, Rules, Accent *string
}

type timeChange struct {
	StartsAt, EndsAt, PreheatAt *time.Time
}

type goodsChange struct {
	Name, Description, ImageAlt, ExternalID, SKU *string
	Picture                                      *string // "" = none
	ListPrice                                    *money.Amount
}

func (p GoodsPatch) stored() *goodsChange {
	c := &goodsChange{Name: p.Name, Description: p.Description, ImageAlt: p.ImageAlt, ExternalID: p.ExternalID, SKU: p.SKU,
		ListPrice: p.ListPrice}
	if p.ImageURL != nil {
		address := ""
		set(&address, *p.ImageURL)
		c.Picture = &address
	}
	return c
}

func (c *goodsChange) patch(note string) GoodsPatch {
	p := GoodsPatch{Name: c.Name, Description: c.Description, ImageAlt: c.ImageAlt, ExternalID: c.ExternalID, SKU: c.SKU,
		ListPrice: c.ListPrice, Note: note}
	if c.Picture != nil {
		picture := unlessZero(*c.Picture)
		p.ImageURL = &picture
	}
	return p
}

// stored returns the change of a request.
func (act *Intervention) stored() (c storedChange, err error) {
	if err := json.Unmarshal([]byte(act.Change), &c); err != nil {
		return c, fmt.Errorf("read the change of intervention %s: %w", act.ID, err)
	}
	if c.Version != storedChangeVersion {
		return c, fmt.Errorf("intervention %s has a change of version %d", act.ID, c.Version)
	}
	return c, nil
}

// Changes returns what an intervention changes in a sale or a product, by name.
func (act *Intervention) Changes() []sale.LogChange {
	if act.Change == "" {
		return []sale.LogChange{}
	}
	c, err := act.stored()
	if err != nil {
		return []sale.LogChange{}
	}
	return sale.LogLine{Details: string(c.Changed)}.Changes()
}

// errChangedMeanwhile reports that a confirmed change is no longer what was requested.
var errChangedMeanwhile = errors.New("what the request is about was changed meanwhile")

// settle notes what changes. For a confirmed request it must be what was requested, and the
// log then has who requested and confirmed it.
func (c *storedChange) settle(changed changes, request *Intervention) (err error) {
	c.Version = storedChangeVersion
	if c.Changed, err = json.Marshal(changed); err != nil {
		return err
	}
	if request == nil {
		return nil
	}
	before, err := request.stored()
	if err != nil {
		return err
	}
	if string(before.Changed) != string(c.Changed) {
		return errChangedMeanwhile
	}
	request.persons(changed)
	return nil
}

// approvedChange is an act on a sale that may change what was approved.
type approvedChange struct {
	act

	changed *changes      // what decide found
	asks    storedChange  // what a request keeps to make the change later
	request *Intervention // the confirmed one; nil = there is none
}

// changeApproved runs c by run. Where it changes what was approved it becomes a request,
// unless it is the confirmed one.
func (s *Service) changeApproved(
	ctx context.Context, run func(context.Context, act) (*sale.Sale, error), c approvedChange,
) (Changed, error) {
	a, asks, changed, request := c.act, c.asks, c.changed, c.request
	decide := a.decide
	a.details = changed
	a.decide = func(v *sale.Sale) (sale.Status, error) {
		to, err := decide(v)
		if err != nil {
			return to, err
		}
		if err := asks.settle(*changed, request); err != nil {
			return to, err
		}
		if request == nil && (v.Status.Approved() || v.Status == sale.Ended) && changed.minded() {
			return to, errNeedsSecond
		}
		return to, nil
	}
	if request != nil {
		a.within = func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error { return s.advance(ctx, tx, request, Done) }
	}
	v, err := run(ctx, a)
	if errors.Is(err, errNeedsSecond) {
		asked, err := s.ask(ctx, &Intervention{Kind: ChangeSale, Sale: a.sale, Note: a.note, RequestedBy: a.by.ID}, asks)
		return Changed{Sale: v, Intervention: asked}, err
	}
	return Changed{Sale: v}, err
}

// ask records a request to change what was approved, or returns the same one of the same
// person that waits.
func (s *Service) ask(ctx context.Context, in *Intervention, asks storedChange) (*Intervention, error) {
	text, err := json.Marshal(asks)
	if err != nil {
		return nil, err
	}
	in.ID, in.Change = id.Act(s.cfg.NewID()), string(text)
	row, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.SaleID(in.Sale), intervention.ItemID(in.Item), intervention.KindEQ(intervention.Kind(in.Kind)),
		intervention.StateEQ(intervention.StateREQUESTED),
		intervention.RequestedBy(in.RequestedBy), intervention.Change(in.Change),
	).First(ctx)
	switch {
	case err == nil:
		return fromRow(row), nil
	case !ent.IsNotFound(err):
		return nil, fmt.Errorf("find requests about sale %s: %w", in.Sale, err)
	}
	return s.request(ctx, in)
}

// changeConfirmed makes the change of a confirmed request. One that is no longer what was
// requested is refused.
func (s *Service) changeConfirmed(ctx context.Context, by sale.Actor, request *Intervention) (*Intervention, error) {
	c, err := request.stored()
	if err != nil {
		return nil, err
	}
	switch {
	case c.Texts != nil:
		p := SalePatch{Title: c.Texts.Title, Rules: c.Texts.Rules, Accent: c.Texts.Accent, Note: request.Note}
		_, err = s.describe(ctx, by, request.Sale, p, request)
	case c.Times != nil:
		in := ScheduleInput{By: by, Sale: request.Sale, StartsAt: c.Times.StartsAt, EndsAt: c.Times.EndsAt,
			PreheatAt: c.Times.PreheatAt, Note: request.Note}
		_, err = s.schedule(ctx, in, request)
	case c.Switches != nil:
		_, err = s.setSwitches(ctx, ActInput{By: by, Sale: request.Sale, Note: request.Note}, *c.Switches, request)
	case c.Goods != nil:
		_, err = s.updateGoods(ctx, by, request.Goods, c.Goods.patch(request.Note), request)
	case c.Value != nil:
		err = s.setDrawValue(ctx, by, *c.Value, request)
	}
	_, refusal := fault.AsRefusal(err)
	switch {
	case errors.Is(err, errChangedMeanwhile), refusal && fault.ReasonOf(err) == fault.Conflict:
		// or its sale is in another state
		refused, err := s.move(ctx, request, Refused)
		if err != nil {
			return nil, err
		}
		return refused, conflict("interventionId")
	case errors.Is(err, errConflict): // decided by another operator
		now, err := s.Intervention(ctx, request.ID)
		if err != nil {
			return nil, err
		}
		return now, conflict("interventionId")
	case err != nil:
		return request, err
	}
	return s.Intervention(ctx, request.ID)
}

// Awaiting is a request that waits for a second operator.
type Awaiting struct {
	*Intervention
	Buyer id.User // of the order to void, who must not confirm; Nil = none
}

// AwaitingSecond returns the requests that wait for a second operator, newest first; at
// most 200.
func (s *Service) AwaitingSecond(ctx context.Context) ([]Awaiting, error) {
	requests, err := s.Interventions(ctx, InterventionList{States: []State{Requested}})
	if err != nil {
		return nil, err
	}
	var ids []id.Order
	for _, r := range requests {
		if r.Order != nil {
			ids = append(ids, *r.Order)
		}
	}
	orders, err := s.cfg.Orders.Orders(ctx, ids)
	if err != nil {
		return nil, err
	}
	waiting := make([]Awaiting, len(requests))
	for i, r := range requests {
		waiting[i].Intervention = r
		if r.Order == nil {
			continue
		}
		if o := orders[*r.Order]; o != nil {
			waiting[i].Buyer = o.User
		}
	}
	return waiting, nil
}

// Agents returns the service accounts of a user, each under the id of its token: what they
// wrote counts as written by the user.
func (s *Service) Agents(ctx context.Context, user id.User) ([]id.User, error) {
	if s.cfg.Tokens == nil {
		return nil, nil
	}
	tokens, err := s.cfg.Tokens.CreatedBy(ctx, user)
	return id.As[id.User](tokens), err
}
