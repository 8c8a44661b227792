package report_test

import "seckill/ent/stockmovement"

func stockKind(kind string) stockmovement.Kind { return stockmovement.Kind(kind) }
