package main

// fault is a fault that a developer could make.
type fault struct {
	name   string
	edits  []edit
	suites []suite // in the order in which they are run
}

// edit replaces a text that a file has exactly once.
type edit struct{ file, line, wrong string }

// suite is tests of a package.
type suite struct {
	pkg   string
	run   string // pattern of tests
	rapid bool   // they are properties: they run more often than in make test
}

// Files that have several faults.
const (
	reserve = "internal/buy/reservation/lua/reserve.lua"
	release = "internal/buy/reservation/lua/release.lua"
)

// Suites of several faults.
var (
	scripts = suite{"test/model", "TestTheScriptsAgreeWithTheModel", true}
	states  = suite{"test/model", "TestEveryState", false}
)

// in returns the tests of a package that match a pattern, and then all of them.
func in(pkg, first string) []suite {
	return []suite{{pkg, first, false}, {pkg, ".", false}}
}

// faults are those of the product, and three of the model.
var faults = []fault{
	{"acknowledge before the commit", []edit{{
		"internal/buy/orderintake/handler.go",
		"		if retryable(result.Err) {\n			return stream.Retryable(err)\n", "		if retryable(result.Err) {\n			return nil\n",
	}}, in("internal/buy/orderintake", "NotWritten|Lost")},
	{"release not idempotent", []edit{{release, "if task ~= released_task or", "if not record or"}}, []suite{scripts}},
	{"writer without the epoch check", []edit{{
		"internal/buy/order/onebyone.go", "		case r.Epoch < item.epoch:\n", "		case false:\n",
	}}, in("internal/buy/orderintake", "LostGate")},
	{"permit not used up", []edit{{
		reserve, "    redis.call('ZREM', it.permits_key, unpack(it.users))\n", "",
	}}, []suite{scripts}},
	{"idempotency keys with a short TTL", []edit{{
		"internal/buy/reservation/reservation.go", "const recordTTL = 24 * time.Hour", "const recordTTL = time.Millisecond",
	}}, []suite{scripts}},
	{"sold-out mark never undone", []edit{{
		"internal/buy/reservation/stockcache.go", "			v = newer(old, v)\n",
		"			if v = newer(old, v); old.Stock == 0 {\n				v.Stock = 0\n			}\n",
	}}, in("internal/buy/reservation", "SoldOut|View|Older")},
	{"snapshot before subscribe", []edit{
		{"internal/platform/notifier/follow.go", "	sub, err := hub.Subscribe(key)\n	if err != nil {\n		return nil, err\n	}\n	first, err := load(ctx)\n	if err != nil {\n		sub.Close()\n", "	first, err := load(ctx)\n	if err != nil {\n"},
		{"internal/platform/notifier/follow.go", "	first.Key, first.Snapshot = key, true\n", "	sub, err := hub.Subscribe(key)\n	if err != nil {\n		return nil, err\n	}\n	first.Key, first.Snapshot = key, true\n"},
	}, in("internal/platform/notifier", "NoChangeFalls")},
	{"expiry without compare-and-set", []edit{
		{"internal/buy/order/expire.go", "o := read[row.ID]; o.Version == row.Version {", "o := read[row.ID]; o != nil {"},
		{"internal/buy/order/expire.go", "entorder.IDIn(ids...), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT))\n	postgres.SkipLocked", "entorder.IDIn(ids...))\n	postgres.SkipLocked"},
		{"internal/buy/order/expire.go", "entorder.IDIn(ids...), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT)).\n		SetStatus", "entorder.IDIn(ids...)).\n		SetStatus"},
	}, in("internal/buy/order", "Expire|Sweepers|Race")},
	{"a repeated reserve with a new task id", []edit{{
		reserve, "it.input .. quantity and 2 or 3, known", "it.input .. quantity and 2 or 3, task",
	}}, []suite{scripts}},
	{"revision not compared in the copy", []edit{{
		"internal/buy/order/lua/newer.lua", "    if revision >= have then\n", "    if have then\n",
	}}, in("internal/buy/order", "Record|Copy")},
	{"reconcile ignores what is in flight", []edit{{
		"internal/gate/preload/drift.go", "			stock -= m.Quantity\n", "			_ = m\n",
	}}, in("internal/gate/preload", "Failed|Differ|Drift|Reservation")},
	{"offer after the end", []edit{
		{"internal/buy/waitlist/offer.go", "	if it.over || it.undrawn {\n		return nil\n	}\n	open :=", "	if it.undrawn {\n		return nil\n	}\n	open :="},
		{"internal/buy/waitlist/offer.go", "|| !status.Loaded || !status.Open {", "|| !status.Loaded {"},
	}, in("internal/buy/waitlist", "AfterTheGateHasEnded")},
	{"refund that returns the unit twice", []edit{{
		"internal/buy/order/move.go", "		update.Where(entorder.ReturnDue(false)).SetRefundedQuantity(is.RefundedQuantity)",
		"		update.SetRefundedQuantity(is.RefundedQuantity)",
	}}, in("internal/buy/order", "ARefundMovesOnce")},
	{"ledger line missing", []edit{{
		"internal/buy/order/move.go",
		"SetKind(stockmovement.Kind(l.kind)).SetQuantity(l.units).SetCreatedAt(o.UpdatedAt).Exec(ctx)\n	if err != nil {",
		"SetKind(stockmovement.Kind(l.kind)).SetQuantity(l.units).SetCreatedAt(o.UpdatedAt)\n	if err == nil {",
	}, {
		"internal/buy/order/move.go", "		return fmt.Errorf(\"ledger %s of order %s: %w\", l.kind, o.ID, err)\n",
		"		return fmt.Errorf(\"ledger %s of order %s: %v\", l.kind, o.ID, err)\n",
	}}, in("internal/buy/order", "Life|Race")},
	{"missing CHECK", []edit{{
		"migrations/20261120103901_first_tables.sql",
		", CONSTRAINT \"stock_conserved\" CHECK (((available + held) + sold) = total)", "",
	}}, in("internal/buy/order", "TheDatabaseRefuses")},
	{"outbox row outside the transaction", []edit{
		{"internal/buy/order/expire.go", "	if err := x.facts.Moved(ctx, tx, PendingPayment, expired...); err != nil {\n		return nil, err\n	}\n", ""},
		{"internal/buy/order/expire.go", "	return expired, nil\n}\n\n// expiry is", "	err = db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {\n		return x.facts.Moved(ctx, tx, PendingPayment, expired...)\n	})\n	return expired, err\n}\n\n// expiry is"},
	}, in("internal/buy/order", "WithoutItsFacts")},
	{"seal before its last entry", []edit{{
		"internal/gate/audit/seal.go", "Seq: next, Through: through, Until", "Seq: next, Through: through - 1, Until",
	}}, in("internal/gate/audit", "Seal|Chain|Late")},
	{"person key after the take", []edit{{
		reserve, "    s.units[first] = s.units[first] + quantity\n", "",
	}}, []suite{scripts}},
	{"share of access given twice", []edit{{reserve, "  take_share(it, shares[i], quantity)\n", ""}}, []suite{scripts}},
	{"draw order by arrival", []edit{{
		"internal/buy/admission/queue/lua/enter.lua", "it.early and '-' .. draw or score + c", "it.early and ms(now - 2 ^ 52) or score + c",
	}}, in("internal/buy/admission/queue", "ACrowdIsServedInOrder")},
	{"model: a writer without the epoch check", []edit{{
		"test/model/system.go", "	if o.Epoch < item.GateEpoch {\n", "	if o.Epoch < 0 {\n",
	}}, []suite{states}},
	{"model: a release while the gate is built", []edit{{
		"test/model/gate.go", "	if g.State == Loading {\n		return ReleaseLater\n	}\n	held", "	held",
	}}, []suite{states}},
	{"model: a build without the unwritten messages", []edit{{
		"test/model/system.go", "row == NoRow && !o.Seen ||", "row == NoRow ||",
	}}, []suite{states}},
}
