package graph

import (
	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/id"
	"seckill/internal/operator"
)

// linkedGoods parses the id of a product that gets an id of another system; Nil = none.
func linkedGoods(text *string) (uuid.UUID, error) {
	if text == nil {
		return uuid.Nil, nil
	}
	u, err := id.Parse(id.Goods, *text)
	if err != nil {
		return u, unknown("goodsId")
	}
	return u, nil
}

func upsertedGoods(in model.UpsertGoodsInput) operator.GoodsDraft {
	return operator.GoodsDraft{
		Name: in.Name, Description: in.Description, ImageURL: in.ImageURL, ListPrice: amount(in.ListPrice),
		ExternalID: in.ExternalID, SKU: deref(in.Sku),
	}
}

func upsertedSale(in model.UpsertSaleInput) operator.SaleDraft {
	d := saleDraft(model.CreateSaleInput{
		Title: in.Title, Slug: in.Slug, Rules: in.Rules, StartsAt: in.StartsAt, EndsAt: in.EndsAt,
		PaymentWindowSeconds: in.PaymentWindowSeconds, PurchaseLimit: in.PurchaseLimit, HideExactStock: in.HideExactStock, RequiresAddress: in.RequiresAddress, Items: in.Items,
	})
	d.Reference = in.ExternalReference
	return d
}
