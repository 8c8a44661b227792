package model_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"seckill/test/model"
)

func TestATraceIsAcceptedInAnyOrderThatTheModelHas(t *testing.T) {
	t.Parallel()
	second := func(n float64) time.Time { return time.Unix(1_700_000_000, int64(n*1e9)) }
	call := func(op model.Op, buyer int8, token int16, task model.Task, code model.Code, began, over float64) model.Call {
		return model.Call{Op: op, Buyer: buyer, Key: 1, Token: token, Task: task, Code: code, Began: second(began), Over: second(over)}
	}
	bought := model.Trace{call(model.Ask, 0, 1, 0, model.Accepted, 0, 1), call(model.Place, 0, 1, 7, model.Accepted, 1, 2)}
	for name, c := range map[string]struct {
		wrong bool
		more  model.Trace
	}{
		"bought": {},
		"another buyer at once": {more: model.Trace{
			call(model.Ask, 1, 2, 0, model.Accepted, 0, 2), call(model.Place, 1, 2, 0, model.SoldOut, 2, 3),
		}},
		"sold twice": {wrong: true, more: model.Trace{
			call(model.Ask, 1, 2, 0, model.Accepted, 0, 1), call(model.Place, 1, 2, 8, model.Accepted, 1, 2),
		}},
		"sold again after a cancel": {more: model.Trace{
			call(model.Cancel, 0, 0, 7, 0, 3, 4), call(model.Ask, 1, 2, 0, model.Accepted, 5, 6),
			call(model.Place, 1, 2, 8, model.Accepted, 6, 7),
		}},
		"sold again before the cancel": {wrong: true, more: model.Trace{
			call(model.Ask, 1, 2, 0, model.Accepted, 0, 1), call(model.Place, 1, 2, 8, model.Accepted, 2.5, 2.8),
			call(model.Cancel, 0, 0, 7, 0, 3, 4),
		}},
		"repeated":                    {more: model.Trace{call(model.Place, 0, 1, 7, model.Replayed, 3, 4)}},
		"repeated with another task":  {wrong: true, more: model.Trace{call(model.Place, 0, 1, 8, model.Replayed, 3, 4)}},
		"sold out though one is left": {wrong: true, more: model.Trace{call(model.Look, 1, 0, 0, model.SoldOut, -3, -2)}},
		"a token without a reply":     {more: model.Trace{call(model.Ask, 1, 2, 0, 0, 0, 1)}},
		"a token that was not given":  {wrong: true, more: model.Trace{call(model.Ask, 0, 2, 0, model.Accepted, 3, 4)}},
	} {
		path := filepath.Join(t.TempDir(), "trace.html")
		said := append(bought[:2:2], c.more...).Explain(1, path)
		_, err := os.Stat(path)
		if (said != "") != c.wrong || (err == nil) != c.wrong {
			t.Errorf("%s: %q, picture: %v", name, said, err)
		}
	}
}
