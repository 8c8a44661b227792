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
	demoOpensIn    = 20 * time.Second
	chineseOpensIn = 5 * time.Minute
	demoLasts      = 6 * time.Hour
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
	Open        DemoSale // open already
	Soon        DemoSale // opens in about 20 seconds
	ChineseOpen DemoSale // as Open, with Chinese texts
	ChineseSoon DemoSale // as Soon, with Chinese texts; opens in about five minutes
	Users       []User   // all with DemoPassword: two customers, an operator, an administrator
}

// Demo creates a catalogue of eight products, an open sale, a sale that opens in about 20
// seconds, the same with Chinese texts, and an account of each role. All sales are loaded,
// with the given payment
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
	g, zh := demoGoods(), chineseGoods()
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
		{&result.ChineseOpen, saleDraft{
			title: "清晨好物", rules: "每人每款限购一件。未按时付款的订单，名额将转给下一位买家。",
			opens: now.Add(-2 * time.Minute), closes: now.Add(demoLasts),
			items: []itemDraft{
				{&zh.headphones, 699_00, 100}, {&zh.reader, 499_00, 40}, {&zh.watch, 399_00, 12},
				{&zh.espresso, 999_00, 8}, {&zh.drone, 1499_00, 1},
			},
		}},
		{&result.ChineseSoon, saleDraft{
			title: "手机与笔记本开抢", rules: "每人每款限购一件。以服务器时间为准，准点开抢。",
			opens: now.Add(chineseOpensIn), closes: now.Add(demoLasts),
			items: []itemDraft{{&zh.phone, 2999_00, 20}, {&zh.laptop, 4599_00, 10}, {&zh.vacuum, 1199_00, 15}},
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

// chineseGoods are the products of demoGoods with Chinese texts.
func chineseGoods() demoCatalogue {
	g := demoGoods()
	for draft, texts := range map[*goodsDraft][2]string{
		&g.phone:      {"极光 X5 手机 256 GB", "6.3 英寸屏幕在阳光下依然清晰，续航两天，夜间拍摄无需闪光灯，随手就能拍好。"},
		&g.laptop:     {"轻羽 14 笔记本电脑", "整机仅重 980 克，充电器收在上盖内；32 GB 内存，无风扇设计，外出可用十一小时。"},
		&g.vacuum:     {"滑翔扫地机器人", "一次建图，记住家中线缆的位置，自动集尘，两个月无需清理。"},
		&g.headphones: {"云雀头戴式耳机", "头戴式设计，续航 40 小时；降噪出色，在列车上也能听清第二小提琴。"},
		&g.reader:     {"羽笔电子书阅读器 7 英寸", "纸感屏幕，夜间暖光，实体翻页键，机身防水，泡澡时也能安心阅读。"},
		&g.watch:      {"鹅卵石手表", "充电一次可用三十天，随时看清时间；需要时也能记录步数。"},
		&g.espresso:   {"暖炉意式咖啡机", "九十秒预热，九巴压力萃取，蒸汽棒容易上手，新手也能打出绵密奶泡。"},
		&g.drone:      {"红隼迷你无人机", "仅重 249 克，可飞行 38 分钟，风向改变时会自动返航，安心又省心。"},
	} {
		draft.name, draft.description = texts[0], texts[1]
	}
	return g
}

func headphones() goodsDraft {
	return goodsDraft{name: "Nimbus headphones", picture: "headphones", priceMinor: 1899_00,
		description: "Over the ear, 40 hours, and quiet enough to hear the second violin on a train."}
}
