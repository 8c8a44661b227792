package graph

import (
	"maps"
	"slices"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

// linkedGoods parses the id of a product that gets an id of another system; Nil = none.
func linkedGoods(text *string) (id.Goods, error) {
	if text == nil {
		return id.Goods{}, nil
	}
	u, err := id.ParseGoods(*text)
	if err != nil {
		return u, unknown("goodsId")
	}
	return u, nil
}

func upsertedGoods(in model.UpsertGoodsInput) operator.GoodsDraft {
	return operator.GoodsDraft{
		Name: in.Name, Description: in.Description, ImageURL: in.ImageURL, ImageAlt: deref(in.ImageAlt),
		ListPrice:  amount(in.ListPrice),
		ExternalID: in.ExternalID, SKU: deref(in.Sku),
	}
}

func upsertedSale(in model.UpsertSaleInput) operator.SaleDraft {
	d := saleDraft(model.CreateSaleInput{
		Title: in.Title, Slug: in.Slug, Rules: in.Rules, StartsAt: in.StartsAt, EndsAt: in.EndsAt,
		PaymentWindowSeconds: in.PaymentWindowSeconds, PurchaseLimit: in.PurchaseLimit, HideExactStock: in.HideExactStock,
		Private: in.Private, RequiresAddress: in.RequiresAddress,
		RequireVerifiedContact: in.RequireVerifiedContact, MinimumAccountAge: in.MinimumAccountAge, Items: in.Items,
		LimitBy: in.LimitBy, Access: in.Access, Draw: in.Draw, Accent: in.Accent,
	})
	d.Reference = in.ExternalReference
	return d
}

// metadataOf returns entries by key; nil when a key is there twice, which is refused.
func metadataOf(entries []*model.OrderMetadataEntryInput) order.Metadata {
	m := order.Metadata{}
	for _, e := range entries {
		if _, twice := m[e.Key]; twice {
			return nil
		}
		m[e.Key] = e.Value
	}
	return m
}

func toMetadata(m order.Metadata) []*model.OrderMetadataEntry {
	out := make([]*model.OrderMetadataEntry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, &model.OrderMetadataEntry{Key: key, Value: m[key]})
	}
	return out
}
