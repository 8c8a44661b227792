package operator

import (
	"context"
	"maps"
	"slices"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// described are the fields that change after the approval of a sale: buyers read them, but
// neither the gate nor an order depends on them.
var described = []string{"title", "rules", "accent"}

// describe changes title, rules and accent of a sale that was approved. A patch that changes
// another field is refused. request is the confirmed one; nil = there is none.
func (s *Service) describe(ctx context.Context, by sale.Actor, saleID id.Sale, p SalePatch,
	request *Intervention) (Changed, error) {
	var d SaleDraft
	var changed changes
	asks := storedChange{Texts: &textChange{Title: p.Title, Rules: p.Rules, Accent: p.Accent}}
	return s.changeApproved(ctx, s.do, approvedChange{changed: &changed, asks: asks, request: request, act: act{
		by: by, sale: saleID, what: sale.ActDescribe, note: p.Note,
		decide: func(v *sale.Sale) (sale.Status, error) {
			d = p.of(v)
			faults := fault.All(optional(&p.Note, maxNote, "note"), line(&d.Title, "title"),
				optional(&d.Rules, maxText, "rules"), checkAccent(&d.Accent))
			changed = d.changes(SalePatch{}.of(v))
			for _, field := range slices.Sorted(maps.Keys(changed)) {
				if field != sale.FormerValues && !slices.Contains(described, field) {
					return "", conflict(field)
				}
			}
			return v.Status, faults
		},
		set: func(u *ent.SaleUpdate) { u.SetTitle(d.Title).SetRules(d.Rules).SetAccent(d.Accent) },
	}})
}
