package operator

import (
	"slices"
	"time"

	"seckill/internal/id"
)

// changes are the fields that an edit changed, each with its new value, as written to the
// log.
type changes map[string]any

// put records a field if it changed.
func put[T comparable](c changes, field string, before, now T) {
	if before != now {
		c[field] = now
	}
}

func putTime(c changes, field string, before, now time.Time) {
	if !before.Equal(now) {
		c[field] = now.UTC()
	}
}

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
	put(c, "requiresAddress", before.RequiresAddress, d.RequiresAddress)
	if !slices.Equal(before.Items, d.Items) {
		items := make([]map[string]any, len(d.Items))
		for i, item := range d.Items {
			items[i] = map[string]any{"goods": id.Format(id.Goods, item.Goods), "price": item.Price.Decimal(), "stock": item.Stock, "purchaseLimit": item.PurchaseLimit}
		}
		c["items"] = items
	}
	return c
}

func (d GoodsDraft) changes(before GoodsDraft) changes {
	c := changes{}
	put(c, "name", before.Name, d.Name)
	put(c, "description", before.Description, d.Description)
	put(c, "listPrice", before.ListPrice.Decimal(), d.ListPrice.Decimal())
	put(c, "externalId", before.ExternalID, d.ExternalID)
	put(c, "sku", before.SKU, d.SKU)
	if picture := pictureName(d.ImageURL); picture != pictureName(before.ImageURL) {
		c["imageUrl"] = picture
	}
	return c
}

// maxPictureName limits what the log stores of a picture in a data URL.
const maxPictureName = 128

// pictureName returns the log's name for a picture; "" = none.
func pictureName(address *string) string {
	if address == nil {
		return ""
	}
	if len(*address) > maxPictureName {
		return (*address)[:maxPictureName] + "…"
	}
	return *address
}
