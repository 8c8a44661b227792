package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/access"
	"seckill/internal/buy/member"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/collect"
	"seckill/internal/staff/operator"
)

// accessOf parses access rules; nil where they were left out.
func accessOf(in []*model.AccessRuleInput) *access.Rules {
	if in == nil {
		return nil
	}
	rules := make(access.Rules, len(in))
	for i, r := range in {
		rules[i] = access.Rule{Kind: r.Kind, Name: deref(r.Name), Source: deref(r.Source), After: r.AfterSeconds,
			Keep: r.KeepUnits, Until: r.KeepSeconds}
	}
	return &rules
}

func toAccessRules(v *sale.Sale) []*model.AccessRule {
	rules := make([]*model.AccessRule, len(v.Access))
	for i := range v.Access {
		rules[i] = toAccessRule(v, &v.Access[i])
	}
	return rules
}

func toAccessRule(v *sale.Sale, r *access.Rule) *model.AccessRule {
	if r == nil {
		return nil
	}
	out := &model.AccessRule{Kind: r.Kind, Name: unlessZero(r.Name), Source: unlessZero(r.Source), AfterSeconds: r.After,
		From: r.From(v.StartsAt), KeepUnits: &r.Keep, KeepSeconds: r.Until}
	if r.Keep > 0 {
		out.KeptUntil = new(r.KeptUntil(v.StartsAt))
	}
	return out
}

// toAccess returns the access of a buyer; nil in a sale without rules.
func (r *Resolver) toAccess(of *sale.Sale, v storefront.Viewer) *model.SaleAccess {
	if !v.Restricted {
		return nil
	}
	return &model.SaleAccess{Rule: toAccessRule(of, v.Access.Rule), From: unlessZero(v.Access.From),
		Open: v.Access.Open(r.Shop.Now())}
}

func noAccess(ctx context.Context, v sale.NoAccess, path []string) model.NoAccessError {
	out := model.NoAccessError{Code: v.Reason(), Path: path, Access: toAccessRules(v.Sale),
		From: unlessZero(v.Access.From), ServerTime: v.ServerTime, Message: message(ctx, v.Reason())}
	if v.Access.Rule != nil {
		out.Message = accessLater.in(ctx)
	}
	return out
}

// accessLater is the text for buyers whose time comes after the opening.
var accessLater = text{"The sale is open to others first. Your time to buy has not come yet.", "本场优先开放给部分买家，尚未到您的开抢时间。"}

func toChangedMembers(list string, c member.Changed) *model.ChangeAccessMembersPayload {
	out := &model.ChangeAccessMembersPayload{Rows: c.Rows, List: &model.AccessList{Name: list, Members: c.Members},
		Problems: make([]*model.AccessRowProblem, len(c.Problems))}
	for i, p := range c.Problems {
		out.Problems[i] = &model.AccessRowProblem{Line: p.Line, Reason: p.Reason}
	}
	return out
}

func toAccessLists(lists []member.ListSize) []*model.AccessList {
	return collect.Map(lists, func(l member.ListSize) *model.AccessList {
		return &model.AccessList{Name: l.List, Members: l.Count}
	})
}

func (r *Resolver) toBatches(v *sale.Sale) []*model.AccessCodeBatch {
	out := make([]*model.AccessCodeBatch, len(v.Codes))
	for i := range v.Codes {
		out[i] = r.toBatch(&v.Codes[i])
	}
	return out
}

func (r *Resolver) toBatch(b *access.Batch) *model.AccessCodeBatch {
	if b == nil {
		return nil
	}
	return &model.AccessCodeBatch{Number: b.Number, Source: b.Source, Codes: b.Codes, Uses: b.Uses, CreatedAt: b.Created,
		ExpiresAt: unlessZero(b.Expires), Revoked: b.Revoked, RevokedCodes: len(b.RevokedCodes), Valid: r.Codes.Knows(b)}
}

func toCodes(codes []operator.Code) []*model.AccessCode {
	return collect.Map(codes, func(code operator.Code) *model.AccessCode {
		return &model.AccessCode{Number: code.Number, Code: code.Text, Revoked: code.Revoked}
	})
}
