package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Times and rules of the demo's sales.
const (
	demoOpensIn = 20 * time.Second
	demoLasts   = 6 * time.Hour
	// DemoPassword is the password of every demo account. The demo listens for a single
	// local user, and keeps no data after it stops.
	DemoPassword = "flash-sale-demo"
)

// DemoSale is a sale of the demo.
type DemoSale struct {
	Sale  id.Sale
	Items []id.Item
	Slug  string
	Title string
	Opens time.Time
}

// DemoResult lists what Demo created.
type DemoResult struct {
	Open  DemoSale // open already
	Soon  DemoSale // opens in about 20 seconds
	Users []User   // all with DemoPassword: two customers, an operator, an administrator
}

// Demo creates a catalogue of eight products, an open sale, a sale that opens in about 20
// seconds, and an account of each role. Both sales are loaded, with the given payment
// window. If the accounts exist already, it creates nothing and returns an error.
func (s *Seeder) Demo(ctx context.Context, window time.Duration) (*DemoResult, error) {
	now := s.now()
	result := &DemoResult{Users: []User{
		{ID: id.User(s.NewID()), Account: "alice@demo.example", Name: "Alice", Role: auth.Customer},
		{ID: id.User(s.NewID()), Account: "bob@demo.example", Name: "Bob", Role: auth.Customer},
		{ID: id.User(s.NewID()), Account: "operator@demo.example", Name: "Olive (operator)", Role: auth.Operator},
		{ID: id.User(s.NewID()), Account: "admin@demo.example", Name: "Adam (administrator)", Role: auth.Admin},
	}}
	if err := s.createUsers(ctx, now, DemoPassword, result.Users); postgres.IsUnique(err) {
		return nil, errors.New("the accounts of the demo are here already: one demo to a database")
	} else if err != nil {
		return nil, err
	}
	g := demoGoods()
	for _, sale := range []struct {
		made  *DemoSale
		draft saleDraft
	}{
		{&result.Open, saleDraft{
			title: "Morning bargains", rules: "One of each per person. An order that is not paid in time goes to the next buyer.",
			opens: now.Add(-time.Minute), closes: now.Add(demoLasts),
			items: []itemDraft{
				{&g.headphones, 699_00, 100}, {&g.reader, 499_00, 40}, {&g.watch, 399_00, 12},
				{&g.espresso, 999_00, 8}, {&g.drone, 1499_00, 1}, // one, to show a sold-out item
			},
		}},
		{&result.Soon, saleDraft{
			title: "Phone and laptop drop", rules: "One of each per person. Opens on the second, by the server's clock.",
			opens: now.Add(demoOpensIn), closes: now.Add(demoLasts),
			items: []itemDraft{{&g.phone, 2999_00, 20}, {&g.laptop, 4599_00, 10}, {&g.vacuum, 1199_00, 15}},
		}},
	} {
		sale.draft.limit, sale.draft.paymentWindow = 1, window
		made, err := s.createSale(ctx, now, sale.draft)
		if err != nil {
			return nil, err
		}
		if err := s.Gates.Load(ctx, made.sale); err != nil {
			return nil, fmt.Errorf("load the sale %q: %w", sale.draft.title, err)
		}
		*sale.made = DemoSale{Sale: made.sale, Items: made.items, Slug: made.slug, Title: sale.draft.title,
			Opens: sale.draft.opens}
	}
	return result, nil
}

// demoCatalogue lists the products of the demo.
type demoCatalogue struct {
	phone, laptop, vacuum, headphones, reader, watch, espresso, drone goodsDraft
}

func demoGoods() demoCatalogue {
	return demoCatalogue{
		phone: goodsDraft{name: "Aurora X5 phone, 256 GB", picture: "phone", priceMinor: 5999_00,
			description: "A 6.3-inch screen that is readable in the sun, two days of battery, and a camera that needs no flash."},
		laptop: goodsDraft{name: "Feather 14 laptop", picture: "laptop", priceMinor: 7999_00,
			description: "980 grams with its charger in the lid. 32 GB of memory, fanless, eleven hours on the road."},
		vacuum: goodsDraft{name: "Glide robot vacuum", picture: "vacuum", priceMinor: 2799_00,
			description: "Maps the flat once, remembers where the cables lie, and empties itself for two months."},
		headphones: headphones(),
		reader: goodsDraft{name: "Quill e-reader, 7 inch", picture: "reader", priceMinor: 1099_00,
			description: "Paper-white, warm light at night, buttons to turn the page, and it survives the bathtub."},
		watch: goodsDraft{name: "Pebblestone watch", picture: "watch", priceMinor: 1299_00,
			description: "Shows the time for thirty days on one charge. Also counts steps, if asked."},
		espresso: goodsDraft{name: "Hearth espresso machine", picture: "espresso", priceMinor: 2499_00,
			description: "Warm in ninety seconds, nine bars, a steam wand that forgives beginners."},
		drone: goodsDraft{name: "Kestrel mini drone", picture: "drone", priceMinor: 3299_00,
			description: "249 grams, 38 minutes in the air, comes home by itself when the wind turns."},
	}
}

func headphones() goodsDraft {
	return goodsDraft{name: "Nimbus headphones", picture: "headphones", priceMinor: 1899_00,
		description: "Over the ear, 40 hours, and quiet enough to hear the second violin on a train."}
}
