package graph

import (
	"context"
	"time"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

// onSale is an operator action on a sale that needs only a note.
type onSale func(context.Context, operator.ActInput) (*sale.Sale, error)

// act runs an action on the sale with a public id and returns the sale.
func (r *Resolver) act(ctx context.Context, do onSale, saleID, note string) (*sale.Sale, error) {
	u, err := id.ParseSale(saleID)
	if err != nil {
		return nil, unknown("saleId")
	}
	return do(ctx, operator.ActInput{By: actor(ctx), Sale: u, Note: note})
}

// amount parses an amount of the input. One that cannot be parsed has no currency, which
// the domain refuses together with the other faults of the input.
func amount(in *model.MoneyInput) money.Amount {
	a, err := money.Parse(in.Amount, in.CurrencyCode)
	if err != nil {
		return money.Amount{}
	}
	return a
}

func goodsDraft(in model.CreateGoodsInput) operator.GoodsDraft {
	return operator.GoodsDraft{
		Name: in.Name, Description: in.Description, ImageURL: in.ImageURL, ImageAlt: deref(in.ImageAlt),
		ListPrice: amount(in.ListPrice),
	}
}

func goodsPatch(in model.UpdateGoodsInput) operator.GoodsPatch {
	p := operator.GoodsPatch{Name: in.Name, Description: in.Description, ImageAlt: in.ImageAlt, Note: deref(in.Note)}
	if in.ImageURL != nil {
		picture := in.ImageURL
		if *picture == "" {
			picture = nil
		}
		p.ImageURL = &picture
	}
	if in.ListPrice != nil {
		price := amount(in.ListPrice)
		p.ListPrice = &price
	}
	return p
}

// itemDrafts parses the items of a sale's input. A malformed id becomes the zero id, which no product has.
func itemDrafts(in []*model.SaleItemInput) []operator.ItemDraft {
	items := make([]operator.ItemDraft, len(in))
	for i, item := range in {
		goods, _ := id.ParseGoods(deref(item.GoodsID))
		items[i] = operator.ItemDraft{Goods: goods, External: deref(item.GoodsExternalID),
			Ambiguous: (item.GoodsID == nil) == (item.GoodsExternalID == nil), Price: amount(item.Price), Stock: item.Stock,
			PurchaseLimit: deref(item.PurchaseLimit)}
	}
	return items
}

func saleDraft(in model.CreateSaleInput) operator.SaleDraft {
	return operator.SaleDraft{
		Title: in.Title, Slug: deref(in.Slug), Rules: in.Rules, StartsAt: in.StartsAt, EndsAt: in.EndsAt,
		PaymentWindow: time.Duration(deref(in.PaymentWindowSeconds)) * time.Second, PurchaseLimit: deref(in.PurchaseLimit),
		HideExactStock: in.HideExactStock, Private: in.Private, RequiresAddress: in.RequiresAddress,
		Items: itemDrafts(in.Items),
		Requires: sale.Requirements{VerifiedContact: in.RequireVerifiedContact,
			AccountAge: time.Duration(in.MinimumAccountAge) * time.Hour},
		LimitBy: limitByOf(in.LimitBy),
		Accent:  deref(in.Accent),
		Access:  accessOf(in.Access),
		Draw:    drawRules(in.Draw),
	}
}

// limitByOf returns what limits count; nil where it was left out.
func limitByOf(kinds []person.Kind) *sale.LimitBy {
	if kinds == nil {
		return nil
	}
	counts := sale.LimitByKinds(kinds)
	return &counts
}

func salePatch(in model.UpdateSaleInput) operator.SalePatch {
	p := operator.SalePatch{
		Title: in.Title, Slug: in.Slug, Rules: in.Rules, StartsAt: in.StartsAt, EndsAt: in.EndsAt,
		HideExactStock: in.HideExactStock, Private: in.Private, RequiresAddress: in.RequiresAddress,
		VerifiedContact: in.RequireVerifiedContact,
		LimitBy:         limitByOf(in.LimitBy), Access: accessOf(in.Access), Note: deref(in.Note),
	}
	if draw, given := in.Draw.ValueOK(); given {
		rules := drawRules(draw)
		p.Draw = &rules
	}
	if in.MinimumAccountAge != nil {
		age := time.Duration(*in.MinimumAccountAge) * time.Hour
		p.AccountAge = &age
	}
	if color, given := in.Accent.ValueOK(); given {
		text := deref(color)
		p.Accent = &text
	}
	if limit, given := in.PurchaseLimit.ValueOK(); given {
		n := deref(limit)
		p.PurchaseLimit = &n
	}
	if in.PaymentWindowSeconds != nil {
		window := time.Duration(*in.PaymentWindowSeconds) * time.Second
		p.PaymentWindow = &window
	}
	if in.Items != nil {
		p.Items = itemDrafts(in.Items)
	}
	return p
}

func switchesPatch(in model.SetSaleSwitchesInput) operator.SwitchesPatch {
	p := operator.SwitchesPatch{
		CaptchaRequired: in.CaptchaRequired, PermitRatio: in.PermitRatio, InflowPerSecond: in.InflowPerSecond,
		LimitBurst: in.LimitBurst, LimitPerSecond: in.LimitPerSecond, ReviewAccounts: in.ReviewAccounts,
		PowMax: in.ProofOfWorkMax,
	}
	if in.CaptchaKinds != nil {
		p.CaptchaKinds = []string{}
	}
	for _, kind := range in.CaptchaKinds {
		p.CaptchaKinds = append(p.CaptchaKinds, string(kind))
	}
	return p
}

func toSwitches(s sale.Switches) *model.SaleSwitches {
	out := &model.SaleSwitches{
		CaptchaRequired: s.CaptchaRequired, CaptchaKinds: []captcha.Kind{}, PermitRatio: float64(s.PermitPerMille) / 1000,
		InflowPerSecond: s.InflowPerSecond, LimitBurst: s.LimitBurst, LimitPerSecond: s.LimitPerSecond,
		ProofOfWorkMax: s.PowMax, ReviewAccounts: s.ReviewAccounts,
	}
	for _, kind := range s.CaptchaKinds {
		out.CaptchaKinds = append(out.CaptchaKinds, captcha.Kind(kind))
	}
	return out
}

func toLogEntries(lines []sale.LogLine) []*model.SaleLogEntry {
	return collect.Map(lines, func(l sale.LogLine) *model.SaleLogEntry {
		return &model.SaleLogEntry{
			At: l.At, Action: l.Act, Changes: pointers(l.Changes()), Status: l.To, Note: unlessZero(l.Note),
			Source: l,
		}
	})
}

func (r *Resolver) goodsTimeline(ctx context.Context, goods id.Goods) ([]*model.GoodsLogEntry, error) {
	lines, err := r.Operator.GoodsTimeline(ctx, goods)
	out := collect.Map(lines, func(l sale.GoodsLine) *model.GoodsLogEntry {
		return &model.GoodsLogEntry{
			At: l.At, Action: l.Act, Changes: pointers(l.Changes()), Note: unlessZero(l.Note),
			Source: l,
		}
	})
	return out, err
}

func (r *Resolver) approved(ctx context.Context, v *sale.Sale) (*model.SaleApproval, error) {
	a, err := r.Operator.Approval(ctx, v.ID)
	if a == nil || err != nil {
		return nil, err
	}
	out := &model.SaleApproval{At: a.At, Hash: a.Hash, Terms: make([]*model.ApprovedTerm, len(a.Terms)),
		Source: a.Approval}
	for i, t := range a.Terms {
		out.Terms[i] = &model.ApprovedTerm{Goods: toGoods(a.Goods[t.Goods]), Name: t.Name, Kind: t.Kind, Approved: t.Approved,
			Now: t.Now, Changed: t.Changed()}
	}
	return out, nil
}

func toPeople(people []operator.Person) []*model.User {
	return collect.Map(people, func(p operator.Person) *model.User {
		return &model.User{
			ID: p.ID, Account: &p.Account, DisplayName: p.DisplayName, Role: p.Role, CreatedAt: p.CreatedAt,
			Disabled: &p.Disabled, Totp: &p.TOTP,
		}
	})
}

// staffFilter parses a filter of operators, who search for more than numbers.
func (r *Resolver) staffFilter(ctx context.Context, f *model.OrderFilter) (order.Filter, error) {
	out, err := orderFilter(f)
	if err != nil || out.Match == nil {
		return out, err
	}
	out.Match, err = r.Operator.OrderMatch(ctx, actor(ctx), *f.Search)
	return out, searched(err)
}

// searched converts the refusal of a search into a fault: a query has no userErrors list.
func searched(err error) error {
	if _, refused := fault.AsRefusal(err); refused {
		return fault.New(fault.BadInput, "Search for at least two characters.")
	}
	return err
}

// toTemplate returns a template as the API shows it, or nil.
func (r *Resolver) toTemplate(ctx context.Context, t *operator.Template) (*model.SaleTemplate, error) {
	if t == nil {
		return nil, nil
	}
	by, err := r.user(ctx, t.SavedBy)
	return &model.SaleTemplate{
		ID: t.ID, Name: t.Name, Title: t.Draft.Title, ItemCount: len(t.Draft.Items),
		LastsSeconds: int(t.Lasts / time.Second), SavedAt: t.SavedAt, SavedBy: by,
	}, err
}

// interventionPage parses the arguments of a page.
func interventionPage(first int, after *string, f *model.InterventionFilter) (operator.InterventionList, error) {
	from, err := cursor.Parse(after, id.ParseAct)
	in := operator.InterventionList{Limit: first, After: from}
	if err != nil || f == nil {
		return in, err
	}
	in.States = f.States
	if f.Kind != nil {
		in.Kind = *f.Kind
	}
	if f.SaleID != nil {
		u, err := id.ParseSale(*f.SaleID)
		if err != nil {
			return in, fault.Wrap(fault.BadInput, "filter.saleId is not the id of a sale.", err)
		}
		in.Sale = &u
	}
	return in, nil
}

func (r *Resolver) interventionConnection(ctx context.Context,
	in operator.InterventionList) (*model.InterventionConnection, error) {
	page, total, err := listing[*operator.Intervention]{
		first: in.Limit, begun: !in.After.IsZero(),
		read: func(ctx context.Context, limit int) ([]*operator.Intervention, error) {
			in.Limit = limit
			return r.Operator.Interventions(ctx, in)
		},
		cursor: func(i *operator.Intervention) string { return i.ID.Public() },
		count:  func(ctx context.Context) (int, error) { return r.Operator.CountInterventions(ctx, in) },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, toIntervention, func(n *model.Intervention, cursor string) *model.InterventionEdge {
		return &model.InterventionEdge{Cursor: cursor, Node: n}
	})
	return &model.InterventionConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

func toIntervention(in *operator.Intervention) *model.Intervention {
	if in == nil {
		return nil
	}
	return &model.Intervention{
		ID: in.ID, Kind: in.Kind, State: in.State, Units: in.Units, EndsAt: in.EndsAt,
		Note: in.Note, Decision: unlessZero(in.Decision), CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt,
		Changes: pointers(in.Changes()), Amount: amountOf(in.Amount), Source: in,
	}
}

// amountOf returns an amount; nil for none.
func amountOf(a money.Amount) *model.Money {
	if a.Currency == "" {
		return nil
	}
	return toMoney(a)
}

// interventionNode returns an intervention, for operators.
func (r *Resolver) interventionNode(ctx context.Context, u uuid.UUID) (model.Node, error) {
	if !isOperator(ctx) {
		return nil, nil
	}
	in, err := r.Operator.Intervention(ctx, id.Act(u))
	return orNil(toIntervention(in)), err
}
