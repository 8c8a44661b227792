package operator

import (
	"slices"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/collect"
)

// changes are the fields that an edit changed, each with its new value, as written to the
// log. The field sale.FormerValues has the former values.
type changes map[string]any

// set records the values of a field that changed.
func (c changes) set(field string, before, now any) {
	old, ok := c[sale.FormerValues].(changes)
	if !ok {
		old = changes{}
		c[sale.FormerValues] = old
	}
	c[field], old[field] = now, before
}

// put records a field if it changed.
func put[T comparable](c changes, field string, before, now T) {
	if before != now {
		c.set(field, before, now)
	}
}

func putTime(c changes, field string, before, now time.Time) {
	if !before.Equal(now) {
		c.set(field, before.UTC(), now.UTC())
	}
}

// accountAge returns the least age of a buyer's account in hours, as stored.
func (d SaleDraft) accountAge() int { return int(d.Requires.AccountAge / time.Hour) }

func (d SaleDraft) changes(before SaleDraft) changes {
	c := changes{}
	put(c, "title", before.Title, d.Title)
	put(c, "slug", before.Slug, d.Slug)
	put(c, "rules", before.Rules, d.Rules)
	putTime(c, "startsAt", before.StartsAt, d.StartsAt)
	putTime(c, "endsAt", before.EndsAt, d.EndsAt)
	put(c, "paymentWindowSeconds", int(before.PaymentWindow/time.Second), int(d.PaymentWindow/time.Second))
	put(c, "purchaseLimit", before.PurchaseLimit, d.PurchaseLimit)
	put(c, "hideExactStock", before.HideExactStock, d.HideExactStock)
	put(c, "private", before.Private, d.Private)
	put(c, "requiresAddress", before.RequiresAddress, d.RequiresAddress)
	put(c, "requireVerifiedContact", before.Requires.VerifiedContact, d.Requires.VerifiedContact)
	put(c, "minimumAccountAge", before.accountAge(), d.accountAge())
	if before.limitBy() != d.limitBy() {
		c.set("limitBy", before.limitBy().Kinds(), d.limitBy().Kinds())
	}
	if !slices.Equal(before.rules(), d.rules()) {
		c.set("access", before.rules().Texts(), d.rules().Texts())
	}
	put(c, "draw", before.Draw.String(), d.Draw.String())
	put(c, "accent", before.Accent, d.Accent)
	if !slices.EqualFunc(before.Items, d.Items, ItemDraft.equal) {
		c.set("items", loggedItems(before.Items), loggedItems(d.Items))
	}
	return c
}

func loggedItems(items []ItemDraft) []map[string]any {
	return collect.Map(items, func(item ItemDraft) map[string]any {
		return map[string]any{"goods": item.Goods.Public(), "price": item.Price.Decimal(), "stock": item.Stock,
			"purchaseLimit": item.PurchaseLimit}
	})
}

// switchChanges returns the switches that changed, under the names of SetSaleSwitchesInput.
func switchChanges(before, now sale.Switches) changes {
	c := changes{}
	put(c, "captchaRequired", before.CaptchaRequired, now.CaptchaRequired)
	put(c, "proofOfWorkMax", before.PowMax, now.PowMax)
	put(c, "permitRatio", before.PermitRatio(), now.PermitRatio())
	put(c, "inflowPerSecond", before.InflowPerSecond, now.InflowPerSecond)
	put(c, "reviewAccounts", before.ReviewAccounts, now.ReviewAccounts)
	put(c, "limitBurst", before.LimitBurst, now.LimitBurst)
	put(c, "limitPerSecond", before.LimitPerSecond, now.LimitPerSecond)
	if !slices.Equal(before.CaptchaKinds, now.CaptchaKinds) {
		c.set("captchaKinds", listed(before.CaptchaKinds), listed(now.CaptchaKinds))
	}
	return c
}

// listed returns an empty list for none, which the log would have as null.
func listed(kinds []string) []string { return append([]string{}, kinds...) }

func (d GoodsDraft) changes(before GoodsDraft) changes {
	c := changes{}
	put(c, "name", before.Name, d.Name)
	put(c, "description", before.Description, d.Description)
	put(c, "listPrice", before.ListPrice.Decimal(), d.ListPrice.Decimal())
	put(c, "externalId", before.ExternalID, d.ExternalID)
	put(c, "sku", before.SKU, d.SKU)
	put(c, "imageAlt", before.ImageAlt, d.ImageAlt)
	put(c, "imageUrl", sale.PictureName(before.ImageURL), sale.PictureName(d.ImageURL))
	return c
}
