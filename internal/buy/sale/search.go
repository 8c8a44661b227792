package sale

import (
	"strings"

	entgoods "seckill/ent/goods"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

// Matches reports whether a sale is one that a search looks for: by a part of its title, or
// by its public id or slug; for staff also by its id in another system.
func Matches(v *Sale, q typed.Query, staff bool) bool {
	title, key := strings.ToLower(v.Title), strings.ToLower(q.Key)
	return strings.Contains(title, strings.ToLower(q.Line)) || strings.Contains(title, strings.ToLower(q.Plain)) ||
		v.Slug == key || v.ID.Public() == key || staff && q.Key != "" && v.ExternalReference == q.Key
}

// salesBy is Matches for stored sales.
func salesBy(q typed.Query, staff bool) predicate.Sale {
	key := strings.ToLower(q.Key)
	match := []predicate.Sale{entsale.TitleContainsFold(q.Line), entsale.TitleContainsFold(q.Plain), entsale.Slug(key)}
	if saleID, err := id.ParseSale(key); err == nil {
		match = append(match, entsale.ID(saleID))
	}
	if staff {
		match = append(match, entsale.ExternalReference(q.Key))
	}
	return entsale.Or(match...)
}

// goodsBy matches products by a part of the name, or by the public id; for staff also by the
// SKU and the id in another system.
func goodsBy(q typed.Query, staff bool) predicate.Goods {
	match := []predicate.Goods{entgoods.NameContainsFold(q.Line), entgoods.NameContainsFold(q.Plain)}
	if goodsID, err := id.ParseGoods(strings.ToLower(q.Key)); err == nil {
		match = append(match, entgoods.ID(goodsID))
	}
	if staff {
		match = append(match, entgoods.SkuEqualFold(q.Key), entgoods.ExternalID(q.Key))
	}
	return entgoods.Or(match...)
}
