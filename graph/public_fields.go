package graph

import (
	"context"

	"seckill/internal/platform/auth"
)

// PublicFields returns the fields, by type, whose values depend on the caller only by
// Audience. Events of subscriptions that select no others are marshalled once for all
// callers of an audience.
func PublicFields() map[string][]string {
	return map[string][]string{
		"Subscription": {"saleStatus", "saleStock"},
		"SaleEvent":    {"kind", "sale", "serverTime"},
		"StockEvent":   {"items", "kind", "serverTime"},
		"Sale": {
			"accent", "access", "drawOpensAt", "endsAt", "entriesCloseAt", "id", "items", "limitBy", "mode",
			"nextTransitionAt", "notice", "offerSeconds",
			"paymentWindowSeconds", "phase",
			"private", "purchaseLimit", "requiresAddress", "revision", "rules", "serverTime", "slug", "startsAt", "title",
		},
		"AccessRule":   {"afterSeconds", "from", "kind", "name"},
		"Accent":       {"color", "dark", "light"},
		"AccentShades": {"fill", "press", "text"},
		"Drawing": {
			"drawnAt", "entries", "recordPath", "root", "round", "roundAt", "signature", "signedRoot", "source", "state",
		},
		"SaleItem": {"drawing", "goods", "id", "price", "purchaseLimit", "stock"},
		"Stock":    {"level", "remaining", "revision", "total", "updatedAt"},
		"Goods":    {"createdAt", "description", "id", "imageAlt", "imageUrl", "listPrice", "name"},
		"Money":    {"amount", "currencyCode"},
	}
}

// Audience names the callers for whom the public fields have the same values: who reads
// sales as staff sees hidden stock, and texts are in the caller's language.
func Audience(ctx context.Context) string {
	name := text{"visitors, en", "visitors, zh"}
	if reads(ctx, auth.SalesRead) {
		name = text{"staff, en", "staff, zh"}
	}
	return name.in(ctx)
}
